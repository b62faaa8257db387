"""Advantages discounted by the distance to the end, chunk by chunk."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.credit.returns import sum_ahead
from bough.piece import Between, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class Ipa:
    """Experimental: IPA (ROME, arXiv 2512.24873): the return, discounted by the number of remaining chunks.

    A chunk is the tokens sampled between two observations: one `ACTION` node. With R_p the return of
    a path of K chunks, for chunk k = 1 .. K:

        A_(p,k) = discount^(K - k) * (R_p - baseline)

    R = 1 and two chunks, discount 0.95:   0.95   1

    With rewards="dense" each chunk gets its discounted return-to-go, as in ROLL's `compute_agentic_reinforce_return`.
    Where only the last chunk has a reward, both are the same:

        A_(p,k) = G_(p,k) - baseline        G_(p,k) = r_(p,k) + discount * G_(p,k+1)

    r = 0.5, 1 and discount 0.95:   1.45   1

    Discounting by chunk is independent of the number of tokens. With these returns the paper weights the
    likelihood of good paths as they are and bounds the ratio of bad ones from above at 1; an objective does that half.
    This follows the abstract, summaries and parts of the released ROLL framework. They show no baseline, so the sign
    of the return must separate good from bad. Where failure pays 0, `baseline="group"` does it. A shared turn gets
    each path's own advantage.

    Attributes:
        discount: Per chunk, in [0, 1].
        baseline: None, or the mean over the task's paths: of R, or with dense rewards of G at the same chunk number.
            A group of one, or a chunk number of no other path, then gets 0.
        rewards: Which rewards are discounted: the return of the path, or the reward of each chunk.
    """

    discount: Annotated[float, Between(0, 1)] = 0.95
    baseline: Literal["none", "group"] = "none"
    rewards: Literal["outcome", "dense"] = "outcome"

    @property
    def compares(self) -> Literal["nothing", "task"]:
        """The comparison set of the advantage."""
        return "task" if self.baseline == "group" else "nothing"

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        if self.rewards == "dense":
            value = sum_ahead(view.reward, np.full(len(view.reward), self.discount), view.start)
            if self.baseline == "group":
                value = normalize(value, group_by(view.task[view.path], view.turn), std="none")
            return spread_turns(view, value)
        outcome = normalize(view.returns, view.task, std="none") if self.baseline == "group" else view.returns
        to_come = view.turns[view.path] - 1 - view.turn
        return spread_turns(view, outcome[view.path] * self.discount**to_come)
