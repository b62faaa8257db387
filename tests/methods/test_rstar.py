"""rStar-Math: the preference model that a round trains is the value of new nodes in the next round."""

from pathlib import Path

import numpy as np
from tests.methods.small import small

from bough.cli.find import find_run
from bough.store import read_metrics, read_trees
from bough.train import Checkpointing, start
from bough.tree import Kind, Rewarded, Tree


def values(file: Path) -> list[float]:
    """The values of the nodes of a file's searches that are no ends of paths."""
    found: list[float] = []
    for each in read_trees(file):
        tree = each if isinstance(each, Tree) else each.tree if isinstance(each, Rewarded) else each.rewarded.tree
        inner = set(tree.parent.tolist())
        acts = np.flatnonzero(tree.kind == Kind.ACTION).tolist()
        scores = [tree.info[node].get("score") for node in acts if node in inner and tree.visits[node]]
        found += [score for score in scores if isinstance(score, float) and abs(score) != 1.0]
    return found


def test_the_next_rounds_search_has_the_values_of_the_trained_preference_model(tmp_path: Path) -> None:
    run = small(find_run("rstar", "sokoban")).replace(steps=2, checkpointing=Checkpointing(every=1, trees_every=1))
    directory = start(run, tmp_path, terminal=False)
    rounds = [row for row in read_metrics(directory.metrics) if row.get("phase") == "rl"]
    assert float(rounds[0]["policy/value_pairs"]) > 0
    first, second = (values(file) for file in sorted(directory.trees.glob("*.safetensors"))[-2:])
    assert first
    assert second
    assert np.abs(first).max() < 1e-9, "the head of the first round is untrained"
    assert np.abs(second).max() > 1e-3
