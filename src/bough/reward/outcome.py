"""Rewards from the environment: its step rewards, and task success."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.piece import piece
from bough.tree import Floats, RewardRange, Tree
from bough.tree.endings import success_reward_nodes


@piece
class EnvReward:
    """Channel "env": the environment's reward of each action, paid where `Tree.env_reward` has it.

    Attributes:
        weight: Factor on the reward.
    """

    weight: float = 1.0

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Any number: the environment decides."""
        return {"env": RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays each node's `env_reward`."""
        return [{"env": self.weight * tree.env_reward} for tree in group]


@piece
class Success:
    """Channel "success": paid once to each path with `success` at its leaf, at the path's last action.

    Where an unsolved path or one with later actions goes through that action too, because another seat's actions or the
    environment's answers differ, it is paid at the leaf.

    Attributes:
        weight: Reward of a solved path.
    """

    weight: float = 1.0

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """`weight` for a solved path."""
        return {"success": RewardRange.of(0, 1, weight=self.weight, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `success_reward_nodes`: the last action of each solved path, or its leaf."""
        return [{"success": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        paid = np.zeros(tree.nodes, dtype=np.float64)
        paid[success_reward_nodes(tree)] = self.weight
        return paid
