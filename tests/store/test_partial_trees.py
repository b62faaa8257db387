from pathlib import Path

import numpy as np
import pytest
from tests.trees import random_tree

from bough.store import PartialTrees, StoreError
from bough.tree import Task


def test_what_is_put_is_got(tmp_path: Path) -> None:
    shelf, rng = PartialTrees(directory=tmp_path / "shelf"), np.random.default_rng(0)
    trees = [random_tree(rng, task=name) for name in "abc"]
    assert shelf.get(0, trees[0].task) is None
    for place, tree in enumerate(trees):
        shelf.put(place, tree)
    for place, tree in enumerate(trees):
        kept = shelf.get(place, tree.task)
        assert kept is not None
        assert kept.equals(tree)
    with pytest.raises(StoreError, match="got a tree of task 'b'; need one of 'z': the folder holds trees of other"):
        shelf.get(1, Task(id="z"))
    shelf.clear()
    assert not (tmp_path / "shelf").exists()


@pytest.mark.parametrize("harm", ["numbers", "words", "gone", "bit of a number", "bit of a word"])
def test_a_tree_that_is_not_whole_is_grown_again(tmp_path: Path, harm: str) -> None:
    shelf, tree = PartialTrees(directory=tmp_path), random_tree(np.random.default_rng(0), task="a")
    shelf.put(0, tree)
    numbers, words = sorted(tmp_path.iterdir(), key=lambda path: path.suffix, reverse=True)
    if harm == "gone":
        words.unlink()
    elif harm.startswith("bit"):
        file = numbers if harm.endswith("number") else words
        raw = bytearray(file.read_bytes())
        raw[-5] ^= 4
        file.write_bytes(raw)
    else:
        file = numbers if harm == "numbers" else words
        file.write_bytes(file.read_bytes()[:-3])
    assert shelf.get(0, tree.task) is None
    shelf.put(0, tree)
    kept = shelf.get(0, tree.task)
    assert kept is not None
    assert kept.equals(tree)
