"""Rewards for tagged thoughts, by rules."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Annotated, Literal

import numpy as np

from bough.needs import STATE_KEYS, Need, annotation
from bough.piece import AtLeast, piece
from bough.tree import (
    Bools,
    Floats,
    Ints,
    RewardRange,
    Ternary,
    Tree,
    counted,
    ends_turn,
    last_where,
    paths_through,
    sum_of_subtree,
    texts_at,
)
from bough.tree.endings import solved
from bough.tree.repeats import repeated

PAID = {"planning": 1, "explore": 2, "reflection": 3}
"""The kinds of thought that are paid, by name; 0 stands for any other."""


@piece
class MetaReasoning:
    """Channel "meta_reasoning": RLVMR's rules (arXiv 2507.22844) for the kind of thought before an action.

        planning      `weight` where the path succeeds
        explore       `weight` where no valid turn of the path before has this action; with novelty="state", where the
                      action leads to a state that the path has not been in
        reflection    `weight` where the action before was invalid, and this one is valid and another
        monitor       nothing

    An answer in another format, or with an action that the environment does not recognise, is paid nothing. A turn on
    several paths is paid for a plan by the share of them that succeed. A tag alone earns nothing: each rule depends on
    the environment's answers.

    With novelty="action", the paper's, an agent that looks again after it moved is not paid for the second look.
    novelty="state" pays for it where the look shows a state of another key; the pay is at the observation, so it
    differs where an action has several outcomes. A state without a key is not paid.

    Attributes:
        weight: The reward of a turn, >= 0.
        novelty: What must be new.
        mark: The parser's annotation with the kind of thought, such as that of `TaggedThinking`.
    """

    weight: Annotated[float, AtLeast(0, "0 or more")] = 1.0
    novelty: Literal["action", "state"] = "action"
    mark: str = "thought"

    @property
    def needs(self) -> frozenset[Need]:
        """The annotation, and state keys for new states."""
        keys = {STATE_KEYS} if self.novelty == "state" else set[Need]()
        return frozenset({annotation(self.mark), *keys})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """0 to `weight`."""
        return {"meta_reasoning": RewardRange(low=0, high=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last `ACTION` node of a turn; new states at the observation after it."""
        return [{"meta_reasoning": self.weight * self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        paid = np.zeros(tree.nodes)
        node = np.flatnonzero(ends_turn(tree))
        action = _numbers(texts_at(tree, node))
        valid = tree.valid[node] != Ternary.NO
        kinds = map(PAID.get, texts_at(tree, node, self.mark), repeat(0))
        thought = np.fromiter(kinds, dtype=np.int8, count=len(node))
        thought *= valid & (tree.well_formed[node] != Ternary.NO)
        planning, explore = thought == PAID["planning"], thought == PAID["explore"]
        paid[node[planning]] = _share_solved(tree)[node[planning]]
        if self.novelty == "action":
            old = np.zeros(len(node), dtype=np.bool_)
            old[valid] = repeated(tree, node[valid], action[valid])
            paid[node[explore & ~old]] = 1.0
        else:
            paid[np.isin(tree.parent, node[explore]) & _new_states(tree)] = 1.0
        before = _turn_before(tree, node)
        corrected = (before >= 0) & ~valid[before] & (action[before] != action)
        paid[node[(thought == PAID["reflection"]) & corrected]] = 1.0
        return paid


def _numbers(texts: Sequence[str]) -> Ints:
    """[n] int64: a number for each text, the same for equal texts."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.fromiter(map(numbers.__getitem__, texts), dtype=np.int64, count=len(texts))


def _turn_before(tree: Tree, node: Ints) -> Ints:
    """[M] int64: for each turn that ends at `node` [M], ascending, the place of the turn before it; -1 for none."""
    place = np.full(tree.nodes, -1)
    place[node] = np.arange(len(node))
    return place[last_where(tree, place >= 0)[tree.parent[node]]]


def _share_solved(tree: Tree) -> Floats:
    """[N] float64: the share of the counted paths through a node that succeed; 0 without any."""
    won = np.zeros(tree.nodes, dtype=np.bool_)
    ends = counted(tree)
    won[ends] = solved(tree)[ends]
    return sum_of_subtree(tree, won) / np.maximum(paths_through(tree), 1)


def _new_states(tree: Tree) -> Bools:
    """[N] bool: whether each node has a state key that no node above it has."""
    known = np.flatnonzero(tree.state_key)
    fresh = tree.state_key != 0
    fresh[known] = ~repeated(tree, known, tree.state_key[known])
    return fresh
