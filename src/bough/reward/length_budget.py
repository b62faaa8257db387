"""A reward for short answers, against a budget of tokens that follows from how hard the task is."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import Above, AtLeast, AtMost, piece
from bough.tree import Bools, Floats, RewardRange, Tree, counted, sampled_tokens, sum_to_root
from bough.tree.endings import solved


@piece
class LengthBudget:
    """DAST (UI-R1-E, arXiv 2503.04472): pays short successes, against a budget of tokens by the task's difficulty.

    In channel "length_budget". With p the share of a task's paths that succeed, and L the tokens that the policy
    sampled on a path:

        budget = p * (mean L of successes) + (1 - p) * (largest L)          x = (L - budget) / budget

        success    max(factor x + base, least)          failure    min(0.9 x - 0.1, -least)

    Four paths, the third of which fails, with a budget of 55:

        L           20       60      100       40
        reward    .818     .455      -.1     .636

    Easy tasks have a small budget. By design a failure that is longer than the budget is punished least, so answers
    become longer where they fail. Whether a path succeeds is the environment's verdict: it does not depend on the
    weights of other rewards. The reward is at the leaf. Paths without sampled tokens get nothing where the budget is 0.

    Try: `bough train grpo --on screens rewards='[EnvReward(), LengthBudget(weight=0.1)]'`

    Attributes:
        weight: Factor, >= 0.
        factor: Of the length in the reward of a success, <= 0.
        base: The reward of a success as long as the budget.
        min_reward: The smallest reward of a success, and the smallest cost of a failure, > 0.
    """

    weight: Annotated[float, AtLeast(0, "0 or more")] = 1.0
    factor: Annotated[float, AtMost(0, "0 or less, so that short successes earn more")] = -0.5
    base: float = 0.5
    min_reward: Annotated[float, Above(0)] = 0.1

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """From a failure without tokens to a success without any."""
        low, high = -max(1.0, self.min_reward), max(self.base - self.factor, self.min_reward)
        return {"length_budget": RewardRange.of(low, high, weight=self.weight, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the leaves of counted paths."""
        ends = [counted(tree) for tree in group]
        length = [sum_to_root(tree, sampled_tokens(tree))[end] for tree, end in zip(group, ends, strict=True)]
        right = [solved(tree)[end] for tree, end in zip(group, ends, strict=True)]
        sizes = np.cumsum([len(end) for end in ends])[:-1]
        scores = np.split(self.score(np.concatenate(length), np.concatenate(right)), sizes) if group else []
        paid = [np.zeros(tree.nodes) for tree in group]
        for column, end, score in zip(paid, ends, scores, strict=True):
            column[end] = self.weight * score
        return [{"length_budget": column} for column in paid]

    def score(self, length: Floats, right: Bools) -> Floats:
        """[P]: the reward before the weight of the paths of a task, by their lengths [P] and success [P]."""
        if not length.any():
            return np.zeros(len(length))
        share = float(right.mean())
        of_right = float(length[right].mean()) if right.any() else 0.0
        budget = share * of_right + (1 - share) * float(length.max())
        over = (length - budget) / budget
        good = np.maximum(self.factor * over + self.base, self.min_reward)
        bad = np.minimum(0.9 * over - 0.1, -self.min_reward)
        return np.asarray(np.where(right, good, bad), dtype=np.float64)
