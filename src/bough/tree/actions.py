"""Counts of a policy's actions: all, cut off, invalid."""

from collections.abc import Iterable
from dataclasses import dataclass

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
    # The last piece has the finish reason of the whole action; only this piece has "valid".
    infos = [info for tree in trees for info in tree.info if "finish" in info and "valid" in info]
    return ActionCounts(
        actions=len(infos),
        cut=sum(info["finish"] == "length" for info in infos),
        invalid=sum(not info["valid"] for info in infos),
    )
