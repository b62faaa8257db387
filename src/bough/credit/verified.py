"""Advantages from verdicts on results and steps."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.normalize import normalize
from bough.needs import Need, channel
from bough.piece import Above, piece
from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns

Design: TypeAlias = Literal["process", "step_augmented", "selective", "global"]


@piece
class Verified:
    """SPARK (arXiv 2512.03244): advantages from a judge's verdicts on results and steps; needs three channels.

    With y the verdict on the path's result, v that on each of its n steps, k of them right, F the format constraint,
    each 0 or 1, and z the group's z-score (ddof 1):

        process          A = z(F y)
        step_augmented   A = z(F (.4 k / n + .6 y))
        selective        A = z(F y) at right steps if it is >= 0, at wrong steps if it is < 0, else 0
        global           A = .8 z(F y) + .2 z_s, with z_s the z-score of v over all steps of the task's paths

    k / n = 2/3 pays .866667 with y = 1 and .266667 with y = 0. With verdicts 1 0 1, "selective" makes .8 of .8: .8 0
    .8, and of -.8: 0 -.8 0. Other channels, such as the environment's reward, have no effect.

    "selective" is the best in the paper. The form of z_s is from a summary of the paper.

    Attributes:
        design: The form of the advantage.
        verdict: The channel of results.
        steps: The channel of steps.
        constraint: The channel of the format constraint.
        epsilon: Added to the standard deviation, > 0.
    """

    compares: ClassVar[Literal["task"]] = "task"

    design: Design = "selective"
    verdict: str = "verdict"
    steps: str = "steps"
    constraint: str = "format_constraint"
    epsilon: Annotated[float, Above(0)] = 1e-6

    @property
    def needs(self) -> frozenset[Need]:
        """The channels."""
        return frozenset({channel(self.verdict), channel(self.steps), channel(self.constraint)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks a channel.
        """
        view = path_view(rewarded)
        final = channel_view(rewarded, self.verdict, setting="Verified.verdict", remedy="Judged(column=verdict)")
        form = channel_view(rewarded, self.constraint, setting="Verified.constraint", remedy="FormatConstraint()")
        right = channel_view(rewarded, self.steps, setting="Verified.steps", remedy="Judged(column=steps)").reward
        return spread_turns(view, self._advantage(view, final.returns, form.returns, right))

    def _advantage(self, view: PathView, final: Floats, constraint: Floats, right: Floats) -> Floats:
        """[S]: the advantages, from [P] verdicts on results, [P] format constraints and [S] verdicts on steps."""
        result = constraint * final
        if self.design == "step_augmented":
            share = np.bincount(view.path, right, view.paths) / np.maximum(view.turns, 1)
            result = constraint * (0.4 * share + 0.6 * final)
        outcome = normalize(result, view.task, epsilon=self.epsilon)[view.path]
        if self.design == "selective":
            return np.where((outcome >= 0) == (right > 0.5), outcome, 0.0)
        if self.design == "global":
            return 0.8 * outcome + 0.2 * normalize(right, view.task[view.path], epsilon=self.epsilon)
        return outcome
