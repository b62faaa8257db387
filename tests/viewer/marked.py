"""Copies of runs whose texts are full of markup."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from bough.store import read_trees, write_trees
from bough.tree import Credited


def marked_copy(run: Path, directory: Path, markup: str) -> Path:
    """A copy of a run that crashed, with markup after each text of its trees and as the reason."""
    shutil.copytree(run, directory)
    for file in (directory / "trees").glob("*.safetensors"):
        write_trees(file, [_marked(each, markup) for each in read_trees(file, Credited)])
    (directory / "status.json").write_text(json.dumps({"state": "crashed", "why": markup, "at": ""}))
    return directory


def _marked(credited: Credited, markup: str) -> Credited:
    tree = credited.tree
    info = tuple({**each, "text": f"{each['text']} {markup}"} if "text" in each else each for each in tree.info)
    return replace(credited, rewarded=replace(credited.rewarded, tree=replace(tree, info=info)))
