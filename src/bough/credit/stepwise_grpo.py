"""The reward of the last turn as the advantage of all turns before it."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.normalize import normalize
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class StepwiseGrpo:
    """Step-wise GRPO of Trinity-RFT (arXiv 2505.17826): the reward of the last turn, over the paths of the task.

    With s_p the reward of the last of the T_p turns of path p, and ddof 1 over the paths of a task:

        A_p = (s_p - mean of s) / (std of s + epsilon)          and A_p / T_p with `share_out`

    for every turn of the path. Rewards of earlier turns have no effect. Two paths, of 2 and 3 turns:

        last reward             1       0
        StepwiseGrpo()      0.707  -0.707
        share_out=True      0.354  -0.236

    `share_out` removes from long paths the extra weight of a loss with a mean over tokens.

    Attributes:
        share_out: Whether the advantage of a path is divided by the number of its turns (`enable_step_norm`).
        epsilon: Added to the standard deviation, > 0.
        as_released: A group of one has mean 0 and standard deviation 1, so that its advantage is its reward.
    """

    share_out: bool = False
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        score = np.zeros(view.paths)
        score[view.path[view.last]] = view.reward[view.last]
        singleton = "raw" if self.as_released else "zero"
        advantage = normalize(score, view.task, std="group", epsilon=self.epsilon, singleton=singleton)
        if self.share_out:
            advantage /= np.maximum(view.turns, 1)
        return spread_turns(view, advantage[view.path])
