"""HAPO: pays answers that are shorter than the successful ones so far."""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from bough.hooks.hook import HookSetup
from bough.hooks.success_record import History, SuccessRecordState
from bough.piece import Between, piece
from bough.tree import Bools, Floats, RewardRange, sampled_tokens


@piece
class LengthHistory:
    """HAPO (arXiv 2505.11225): pays length against the task's shortest successful path of earlier steps.

    With n the tokens that the policy sampled on a path and h the fewest on a successful path of the task before this
    step, channel "length_history" at the last action, or at the leaf where other paths go through that action, is
    `weight` times, with u = cos(pi / 2 * min(n / h, 2)):

        cosine    success    max(-0.7, u)                            failure    min(0, u)
        linear    success    1 - n / h below h, 0 up to 1.1 h,       failure    0 below 1.1 h,
                             then max(-0.7, -(n - 1.1 h) / h)                   then max(-1, -(n - 1.1 h) / h)

        h 100    n             50     100     120     150     200     400
        cosine   success     .707       0   -.309     -.7     -.7     -.7
                 failure        0       0   -.309   -.707      -1      -1

    With `history="mean"` h is the mean of all successful paths of the task before this step, in place of the fewest.

    A task that was never solved is paid nothing, so it has no pressure on length. With success paid 1 and `weight` up
    to 1, every success is paid at least .3 and every failure at most 0.

    In released code the record is lost when a run is resumed; here it is part of the checkpoint.

    Metrics: `length_history/tasks`, tasks with a record; `length_history/record`, the mean record.

    Try: `bough train grpo --on shop hooks='[LengthHistory()]'`

    Attributes:
        weight: From 0 to 1.
        form: "cosine" or "linear".
        history: h is the fewest tokens of a success, "min", or the mean over all successes, "mean".
    """

    weight: Annotated[float, Between(0, 1, "a number from 0 to 1, so that success is paid more than failure")] = 1.0
    form: Literal["cosine", "linear"] = "cosine"
    history: History = "min"

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """From minus `weight` to `weight`."""
        return {"length_history": RewardRange(low=-self.weight, high=self.weight, per="path")}

    def build(self, setup: HookSetup) -> SuccessRecordState:
        """Return the state without records."""
        return SuccessRecordState(
            self, setup, channel="length_history", count=sampled_tokens, pay=self.pay, history=self.history
        )

    def pay(self, tokens: Floats, success: Bools, record: float | None) -> Floats:
        """[P]: the reward of paths with this many tokens [P]."""
        if not record:
            return np.zeros(len(tokens))
        if self.form == "cosine":
            found = np.cos(np.pi / 2 * np.minimum(tokens / record, 2.0))
            return self.weight * np.where(success, np.maximum(-0.7, found), np.minimum(0.0, found))
        over = np.minimum(0.0, -(tokens - 1.1 * record) / record)
        short = np.maximum(0.0, 1.0 - tokens / record)
        return self.weight * np.where(success, short + np.maximum(-0.7, over), np.maximum(-1.0, over))
