"""Advantages from comparing the paths of a task turn by turn."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.credit.returns import sum_ahead
from bough.piece import Above, Between, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class StepGrpo:
    """Experimental: Step-GRPO (arXiv 2505.22095): turns of a task with the same number, by their rewards.

    The paper (R1-Router) was not available here; this is its idea as others describe it, a z-score over
    the samples of each step. Other methods of the name (R1-VL, 2503.12937) differ. Over the paths of a task with
    a turn t, with r the reward of a turn and ddof 1:

        G_t = r_t + discount * G_(t+1)          A_t = (G_t - mean of G_t) / (std of G_t + epsilon)

                 rewards     discount=0         discount=1
        path 0     1 0     0.707  -0.707        0  -0.707
        path 1     0 1    -0.707   0.707        0   0.707

    With std="batch" the deviation is that of G over the turns of all paths and tasks. Small differences at one turn
    number then stay small. Returns 1, 0 at the first turn and .1, 0 at the second, discount 0: A = .707, -.707 and
    .707, -.707; by batch 1.030, -1.030 and .103, -.103.

    The k-th turns of two paths are seldom in the same state, so the comparison is noisier than
    in rules with state keys; this rule needs only rewards. A turn number of only one path of the task,
    and a tie, get 0.

    Attributes:
        discount: Weight of later rewards per turn, in [0, 1]; 0 is the paper's comparison of each turn's
            own reward, which needs an environment or a reward with rewards per turn.
        std: The standard deviation to divide by: of the turns compared, of the batch, or none.
        epsilon: Added to the standard deviation, > 0.
    """

    discount: Annotated[float, Between(0, 1)] = 0.0
    std: Literal["group", "batch", "none"] = "group"
    epsilon: Annotated[float, Above(0)] = 1e-6

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        value = sum_ahead(view.reward, np.full(len(view.reward), self.discount), view.start)
        peers = group_by(view.task[view.path], view.turn)
        return spread_turns(view, normalize(value, peers, std=self.std, epsilon=self.epsilon))
