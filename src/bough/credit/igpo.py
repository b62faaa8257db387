"""Advantages from normalised rewards of turns, summed to the end of the path."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.credit.returns import sum_ahead
from bough.piece import Above, Between, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class Igpo:
    """IGPO (arXiv 2510.14967): rewards of turns are normalised, then summed ahead; needs rewards per turn.

    With r the reward of a turn, and the mean and standard deviation over all turns of the task's paths
    (`over="task"`, ddof 1), or over the turns with the same number (`over="turn"`):

        z_t = (r_t - mean) / (std + epsilon)            A_t = z_t + discount * A_(t+1)

    Rewards .3, 1 and .1, 0 of two paths, over="turn" and std="none":   A = .6, .5 and -.6, -.5.

    The information gain is `PotentialGain` with `AnswerProbe`, the outcome a reward of the last turn. A turn number of
    only one path, and a tie, get 0.

    Released code sums first: from each token's sum of later rewards it subtracts the mean at equal token indices, and
    does not divide. Observation tokens restart its sum, so early turns get nothing of the outcome. The same by turns,
    without that fault, is `StepGrpo(discount=1, std="none")`. It differs from `over="turn", std="none"` where paths
    have different lengths: a path that has ended is in no mean. Rewards .3, 1 and .1, 0, .5:

        sums, then the mean (StepGrpo)          .35   .25      -.35  -.25   0
        the mean, then sums (over="turn")       .6    .5       -.6   -.5    0

    Attributes:
        over: The turns that are compared.
        discount: Weight of later turns, in [0, 1].
        std: The standard deviation to divide by: of the turns compared, of the batch, or none.
        epsilon: Added to the standard deviation, > 0.
    """

    over: Literal["task", "turn"] = "task"
    discount: Annotated[float, Between(0, 1)] = 1.0
    std: Literal["group", "batch", "none"] = "group"
    epsilon: Annotated[float, Above(0)] = 1e-6

    @property
    def compares(self) -> Literal["nothing", "task"]:
        """All turns of a task are compared, so those of a single path too; turns of one number with other paths."""
        return "nothing" if self.over == "task" else "task"

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        task = view.task[view.path]
        peers = task if self.over == "task" else group_by(task, view.turn)
        score = normalize(view.reward, peers, std=self.std, epsilon=self.epsilon)
        return spread_turns(view, sum_ahead(score, np.full(len(score), self.discount), view.start))
