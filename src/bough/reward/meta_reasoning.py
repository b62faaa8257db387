"""Rewards for tagged thoughts, by rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.checks import check_choices, check_finite
from bough.tree import (
    Bools,
    Floats,
    PayRange,
    Ternary,
    Tree,
    counted,
    ends_turn,
    mark_in,
    paths_through,
    sum_of_subtree,
    text_in,
)
from bough.tree.endings import solved
from bough.tree.needs import STATE_KEYS, Need, annotation


@dataclass(frozen=True, slots=True, kw_only=True)
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

    weight: float = 1.0
    novelty: Literal["action", "state"] = "action"
    mark: str = "thought"

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ValueError(f"MetaReasoning.weight: got {self.weight}; need 0 or more")
        check_choices(self)
        check_finite(self)

    @property
    def needs(self) -> frozenset[Need]:
        """The annotation, and state keys for new states."""
        keys = {STATE_KEYS} if self.novelty == "state" else set[Need]()
        return frozenset({annotation(self.mark), *keys})

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """0 to `weight`."""
        return {"meta_reasoning": PayRange(low=0, high=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last `ACTION` node of a turn; new states at the observation after it."""
        return [{"meta_reasoning": self.weight * self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        succeeds, ends, fresh = _share_solved(tree), ends_turn(tree), _new_states(tree)
        paid = np.zeros(tree.nodes)
        # By node: the last turn's action and whether it was valid, and the actions of the valid turns so far.
        last: list[tuple[str, bool] | None] = [None] * tree.nodes
        used: list[frozenset[str]] = [frozenset()] * tree.nodes
        for node in range(1, tree.nodes):
            parent = int(tree.parent[node])
            last[node], used[node] = last[parent], used[parent]
            if not ends[node]:
                continue
            action, valid = text_in(tree.info[node]) or "", tree.valid[node] != Ternary.NO
            thought = mark_in(tree.info[node], self.mark) if valid and tree.well_formed[node] != Ternary.NO else ""
            if thought == "planning":
                paid[node] = succeeds[node]
            elif thought == "explore" and self.novelty == "action":
                paid[node] = action not in used[parent]
            elif thought == "explore":
                paid[np.flatnonzero((tree.parent == node) & fresh)] = 1.0
            elif thought == "reflection":
                before = last[parent]
                paid[node] = before is not None and not before[1] and before[0] != action
            last[node] = (action, valid)
            used[node] = used[parent] | {action} if valid else used[parent]
        return paid


def _share_solved(tree: Tree) -> Floats:
    """[N] float64: the share of the counted paths through a node that succeed; 0 without any."""
    won = np.zeros(tree.nodes)
    ends = counted(tree)
    won[ends] = solved(tree)[ends]
    return sum_of_subtree(tree, won) / np.maximum(paths_through(tree), 1)


def _new_states(tree: Tree) -> Bools:
    """[N] bool: whether each node has a state key that no node above it has."""
    fresh, seen = np.zeros(tree.nodes, dtype=np.bool_), [frozenset[int]()] * tree.nodes
    for node, key in enumerate(tree.state_key.tolist()):
        above = seen[int(tree.parent[node])] if node else frozenset[int]()
        fresh[node] = key != 0 and key not in above
        seen[node] = above | {key} if fresh[node] else above
    return fresh
