"""Rewards from the environment: its step rewards, and task success."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.reward.endings import last_action, solved
from bough.tree import Floats, Kind, Tree, leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvReward:
    """Channel "env": the environment's reward of each action, paid at that action.

    Attributes:
        weight: Factor on the reward.
    """

    weight: float = 1.0

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"env": self.weight * np.where(tree.kind == Kind.ACTION, tree.env_reward, 0.0)} for tree in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """Channel "success": paid once to each path with `success` at its leaf, at the path's last action.

    Attributes:
        weight: Reward of a solved path.
    """

    weight: float = 1.0

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each solved path.

        Raises:
            ValueError: when one action ends both a solved and an unsolved path.
        """
        return [{"success": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        ends = leaves(tree)
        won, last = solved(tree)[ends], last_action(tree)[ends]
        if both := set(last[won].tolist()) & set(last[~won].tolist()):
            raise ValueError(
                f"Success: got actions {sorted(both)} of task {tree.task.id}, after each of which one path is solved "
                "and another is not; need one ending an action"
            )
        paid = np.zeros(tree.nodes, dtype=np.float64)
        paid[last[won]] = self.weight
        return paid
