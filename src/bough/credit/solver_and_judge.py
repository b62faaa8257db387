"""Scores of paths for preference pairs: the success first, then the share of steps that a judge finds right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.normalize import normalize
from bough.credit.success import succeeded
from bough.needs import Need, channel
from bough.tree import Credited, Rewarded, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverAndJudge:
    """StepORLM (arXiv 2509.22558): a path's score is 2 c + q, its advantage the score minus the mean of the task.

    c is 1 for a success of the environment, the solver's verdict, else 0; q the share of the path's steps that the
    judge finds right. Between two paths with different c the gap is at least 1, else it is the difference of q. So with
    `WDpo(max_weight=1)` the right path wins with weight 1, of two right or two wrong ones the one with more right steps
    wins with the difference of q as its weight, and equal ones make no pair:

        (c, q)     (1, .5) and (0, .9)   w 1      (1, 1) and (1, .6)   w .4      (0, .2) and (0, .2)   none

    Attributes:
        steps: The channel of the judge's verdicts, 1 at a right step, else 0.
    """

    compares: ClassVar[Literal["task"]] = "task"

    steps: str = "steps"

    @property
    def needs(self) -> frozenset[Need]:
        """The channel of steps."""
        return frozenset({channel(self.steps)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the channel `steps`.
        """
        view = path_view(rewarded)
        judged = channel_view(rewarded, self.steps, setting="SolverAndJudge.steps", remedy="Judged(column=steps)")
        score = 2.0 * succeeded(view) + judged.returns / np.maximum(view.turns, 1)
        return spread_turns(view, normalize(score, view.task, std="none")[view.path])
