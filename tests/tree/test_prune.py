"""Trees with some of their paths, and trees as columns."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from tests.trees import PER_TOKEN, random_tree, rewarded, seeds

from bough.tree import (
    UNKNOWN_VALUES,
    Rewarded,
    RolloutCounts,
    Tree,
    cut_tree,
    join_trees,
    keep_paths,
    leaves,
    path,
    sum_to_root,
    tree_record,
)


def told(tree: Tree, leaf: int) -> list[tuple[object, ...]]:
    """Everything about a path, node by node."""
    lines: list[tuple[object, ...]] = []
    for node in path(tree, leaf).tolist():
        span = slice(int(tree.span[node]), int(tree.span[node + 1]))
        columns = [
            getattr(tree, name)[node].tobytes()
            for name in ("kind", "outcome", "env_reward", "state_key", "source", *UNKNOWN_VALUES)
        ]
        words = [getattr(tree, name)[span].tobytes() for name in PER_TOKEN]
        lines.append((*columns, *words, int(tree.policy_version[node]), tree.info[node]))
    return lines


@given(seeds())
def test_what_is_kept_of_a_tree_is_as_it_was(rng: np.random.Generator) -> None:
    tree = random_tree(rng)
    ends = leaves(tree)
    kept = ends[rng.random(len(ends)) < 0.5]
    assume(len(kept))
    whole = Rewarded(
        tree=tree,
        channels={"env": np.asarray(tree.env_reward), "more": rng.normal(size=tree.nodes)},
        estimates={"thought": rng.normal(size=len(tree.token))},
    )
    part = keep_paths(whole, kept)
    assert len(leaves(part.tree)) == len(kept)
    for old, new in zip(kept.tolist(), leaves(part.tree).tolist(), strict=True):
        assert told(tree, old) == told(part.tree, new)
        for name in whole.channels:
            assert sum_to_root(tree, whole.channels[name])[old] == sum_to_root(part.tree, part.channels[name])[new]
    assert set(part.estimates["thought"]) <= set(whole.estimates["thought"])
    assert part.estimates["thought"].shape == part.tree.token.shape
    assert keep_paths(whole, ends).tree.equals(tree)


@given(seeds())
def test_trees_as_columns_and_back(rng: np.random.Generator) -> None:
    trees = [random_tree(rng, task=str(task)) for task in range(int(rng.integers(4)))]
    columns = join_trees(trees)
    for at, tree in enumerate(trees):
        assert cut_tree(columns, at, tree_record(tree)).equals(tree)


def test_a_tree_in_part_keeps_its_counts() -> None:
    tree = replace(random_tree(np.random.default_rng(0)), counts=RolloutCounts(turns=3), replayed=True)
    part = keep_paths(rewarded(tree), leaves(tree)[:1]).tree
    assert (part.counts, part.replayed) == (tree.counts, True)
