"""Advantages from the outcome of a path and penalties of its wrong steps."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.normalize import normalize
from bough.needs import Need, channel
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class Capo:
    """CAPO (arXiv 2508.02298): the outcome of the path, less the turn's own penalty; needs a channel of penalties.

    With R the path's return without the channel `step`, and r that channel's reward of the turn itself, over the turns
    of the task's paths, each path with the same weight (ddof 1):

        v = R + r            A = (v - mean of v) / (std of v + epsilon)

    With a success of 2 and a penalty of 1, v is 2 for a right step of a success, 1 for a wrong one, 0 for a right step
    of a failure and -1 for a wrong one: a success with a mistake stays above a failure without. Long paths do not
    weigh more in the mean, as they would over tokens.

    Attributes:
        step: The channel of the penalties.
        std: The standard deviation to divide by: of the task, of the batch, or none.
        epsilon: Added to the standard deviation, > 0.
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"

    step: str = "critique"
    std: Literal["group", "batch", "none"] = "group"
    epsilon: Annotated[float, Above(0)] = 1e-6

    @property
    def needs(self) -> frozenset[Need]:
        """The channel of penalties."""
        return frozenset({channel(self.step)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the channel `step`.
        """
        view = path_view(rewarded)
        remedy = "Judged(column=critique, weight=-1)"
        own = channel_view(rewarded, self.step, setting="Capo.step", remedy=remedy)
        value = (view.returns - own.returns)[view.path] + own.reward
        each_path = 1.0 / np.maximum(view.turns, 1)[view.path]
        task = view.task[view.path]
        return spread_turns(view, normalize(value, task, std=self.std, weight=each_path, epsilon=self.epsilon))
