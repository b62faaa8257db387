"""Counts of a policy's actions: all, cut off, invalid."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bough.tree.marks import Ternary
from bough.tree.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCounts:
    """Counts of the sampled actions that the environment received.

    Attributes:
        actions: Number of actions.
        cut: Number of actions that ended at a token limit instead of a stop token.
        invalid: Number of actions with `Step.valid` False.
    """

    actions: int = 0
    cut: int = 0
    invalid: int = 0

    @property
    def shares(self) -> dict[str, float]:
        """Returns `cut_actions` and `valid_actions`, each a share of all actions in [0, 1]; empty without actions."""
        if not self.actions:
            return {}
        return {"cut_actions": self.cut / self.actions, "valid_actions": 1 - self.invalid / self.actions}


def count_actions(trees: Iterable[Tree]) -> ActionCounts:
    """Counts all actions of some trees."""
    counts = np.zeros(3, dtype=np.int64)
    for tree in trees:
        # The last piece of an executed action: only this piece has a known `valid`.
        acts = (tree.cut_off != Ternary.UNKNOWN) & (tree.valid != Ternary.UNKNOWN)
        cut, invalid = acts & (tree.cut_off == Ternary.YES), acts & (tree.valid == Ternary.NO)
        counts += [acts.sum(), cut.sum(), invalid.sum()]
    actions, cut_off, wrong = counts.tolist()
    return ActionCounts(actions=actions, cut=cut_off, invalid=wrong)
