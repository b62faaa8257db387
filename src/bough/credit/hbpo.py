"""Advantages of paths with budgets: against all paths of the task, and against the largest reward of their budget."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.needs import Need, channel
from bough.piece import Above, AtLeast, piece
from bough.tree import Credited, Floats, InfoNumber, Ints, Rewarded, path_view, spread_turns

BUDGET = InfoNumber("budget")
"""The budget of `BudgetedChains`, tokens."""


@piece
class Hbpo:
    """HBPO (arXiv 2507.15844): paths of a task over all budgets, and the mean of each budget; needs `BudgetReward`.

    With R the reward of a path in the channel `channel`, b its budget, and z the z-score (ddof 1) over the paths of the
    task, whatever their budgets:

        A = z(R) + [mean of R over the task's paths with budget b  -  c cos(pi b / 2L)]

    The bracket is a budget's mean reward less the largest reward of a path that keeps it. It is equal for all paths of
    the budget, so it raises or lowers a whole budget, also where the rewards of a task are tied. A path without
    a budget has no bracket. Rewards of other channels have no effect. L 4096, c 4:

        b                512     512    2560    2560
        R                3.5       0     3.0     2.0
        z              0.888  -1.373   0.565  -0.081
        A             -1.285  -3.546   0.843   0.197
        as_released   -3.458  -5.719   1.121   0.475

    A path alone in its task has z 0; the released code fails at it.

    Attributes:
        channel: The channel of the rewards.
        longest_tokens: L, as in `BudgetReward`.
        scale: c, as in `BudgetReward`.
        epsilon: Added to the standard deviation, > 0.
        as_released: The bracket counts twice, as in the released code (HBPO, `compute_grpo_outcome_advantage`).
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"

    channel: str = "budget"
    longest_tokens: Annotated[int, AtLeast(1)] = 4096
    scale: Annotated[float, Above(0)] = 4.0
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """The channel of the rewards."""
        return frozenset({channel(self.channel)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the channel.
        """
        view = path_view(rewarded)
        rewards = channel_view(rewarded, self.channel, setting="Hbpo.channel", remedy="BudgetReward()").returns
        budgets = np.concatenate([np.zeros(0), *(BUDGET.newest(each.tree) for each in rewarded)])[view.leaf]
        found = self.advantages(rewards, view.task, budgets)
        return spread_turns(view, found[view.path])

    def advantages(self, rewards: Floats, task: Ints, budget: Floats) -> Floats:
        """[n] float64: the advantages of n paths with these rewards, tasks and budgets; nan is no budget."""
        shared = normalize(rewards, task, std="group", epsilon=self.epsilon)
        announced = ~np.isnan(budget)
        own = group_by(task, np.where(announced, budget, -1).astype(np.int64))
        mean = (np.bincount(own, rewards) / np.maximum(np.bincount(own), 1))[own]
        most = self.scale * np.cos(np.pi / 2 * budget / self.longest_tokens)
        bracket = np.where(announced, mean - most, 0.0)
        return shared + (2.0 if self.as_released else 1.0) * bracket
