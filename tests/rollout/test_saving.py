"""What the branches of a tree share is written once: the tokens of every shape, against chains with as many leaves."""

import numpy as np
import pytest
from tests.explore.shapes import grown, place_of, spelling

from bough.engine import Scripted
from bough.explore import Chains, EntropyForks, EpTree, Forks, FullTree, Segments
from bough.rollout import Explorer
from bough.tree import Kind, Outcome, Tree, leaves, path

TURNS, TOKENS = 6, 4
"""Of each path, and of each of its turns: three letters and a stop."""
# Tokens that `Latr` forces may end a turn, so that its paths are not equally long.
SHAPES = [
    Chains(n=5),
    Forks(chains=2, draws=3, rounds=2),
    FullTree(width=2, depth=3),
    Segments(width=8, tokens=3),
    EpTree(chains=2, spots=3),
    EntropyForks(paths=8, chains=3),
]


def written(tree: Tree) -> np.ndarray:
    """[N]: tokens of actions from the root to each node."""
    own = np.where(tree.kind == Kind.ACTION, np.diff(tree.span), 0)
    return np.asarray([int(own[path(tree, node)].sum()) for node in range(tree.nodes)])


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_a_shape_costs_its_leaves_less_what_they_share(shape: Explorer) -> None:
    """P paths of L tokens that part at nodes with prefixes of s tokens and c children: P L - sum of (c - 1) s."""
    place = place_of(Scripted(script=spelling(TOKENS - 1)), turns=(TOKENS - 1) * TURNS)
    shared = 0
    for seed in range(5):
        tree = grown(place, shape, seed=seed)
        ends = leaves(tree)
        whole = [leaf for leaf in ends if tree.outcome[leaf] == Outcome.TERMINATED]
        assert [int(length) for length in written(tree)[whole]] == [TURNS * TOKENS] * len(whole)
        children = np.bincount(tree.parent[1:], minlength=tree.nodes)
        saved = int(((children - 1) * written(tree))[children > 1].sum())
        cut_off = sum(int(written(tree)[leaf]) for leaf in ends if leaf not in whole)
        unique = int(np.diff(tree.span)[tree.kind == Kind.ACTION].sum())
        assert unique == len(whole) * TURNS * TOKENS + cut_off - saved
        shared += saved
    assert (shared > 0) == (not isinstance(shape, Chains))
