"""Rewards from the environment: its step rewards, and task success."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Floats, PayRange, Tree, leaves
from bough.tree.endings import last_action, solved


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvReward:
    """Channel "env": the environment's reward of each action, paid where `Tree.env_reward` has it.

    Attributes:
        weight: Factor on the reward.
    """

    weight: float = 1.0

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """Any number: the environment decides."""
        return {"env": PayRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays each node's `env_reward`."""
        return [{"env": self.weight * tree.env_reward} for tree in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """Channel "success": paid once to each path with `success` at its leaf, at the path's last action.

    Where solved and unsolved paths end after one action, because another seat's actions differ, it is paid at the leaf.

    Attributes:
        weight: Reward of a solved path.
    """

    weight: float = 1.0

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """`weight` for a solved path."""
        return {"success": PayRange.of(0, 1, weight=self.weight, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each solved path."""
        return [{"success": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        ends = leaves(tree)
        won, last = solved(tree)[ends], last_action(tree)[ends]
        mixed = np.isin(last[won], last[~won])
        paid = np.zeros(tree.nodes, dtype=np.float64)
        paid[np.where(mixed, ends[won], last[won])] = self.weight
        return paid
