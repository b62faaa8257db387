"""Advantages of questions and answers, each compared with its own kind."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.channel_view import channel_view
from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.needs import Need, channel
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class QuestionAnswer:
    """ProMed (arXiv 2508.13514): questions have their own gain and the result, answers the result; needs a channel.

    With R the path's return without the channel `gain`, and g that channel's reward of the turn, the last turn of a
    path is its answer, and the turns before are questions:

        question    v = gain_weight * g + result_weight * R          answer    v = answer_weight * R

    The advantage is v minus the mean of the task's turns of this kind, over their standard deviation (ddof 1). A kind
    with one turn gets 0. With the defaults, a question of gain .7 in a path of return 1 has 2.4, its answer 3.

    Attributes:
        gain: The channel of gains.
        gain_weight: Factor on the gain of a question.
        result_weight: Factor on the return, for a question.
        answer_weight: Factor on the return, for an answer.
        std: The standard deviation to divide by: of the task's turns of a kind, or none.
        epsilon: Added to the standard deviation, > 0.
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"

    gain: str = "facts"
    gain_weight: float = 2.0
    result_weight: float = 1.0
    answer_weight: float = 3.0
    std: Literal["group", "none"] = "group"
    epsilon: Annotated[float, Above(0)] = 1e-6

    @property
    def needs(self) -> frozenset[Need]:
        """The channel of gains."""
        return frozenset({channel(self.gain)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the channel `gain`.
        """
        view = path_view(rewarded)
        gains = channel_view(rewarded, self.gain, setting="QuestionAnswer.gain", remedy="Judged(column=facts)")
        result = (view.returns - gains.returns)[view.path]
        question = self.gain_weight * gains.reward + self.result_weight * result
        value = np.where(view.last, self.answer_weight * result, question)
        kind = group_by(view.task[view.path], view.last)
        return spread_turns(view, normalize(value, kind, std=self.std, epsilon=self.epsilon))
