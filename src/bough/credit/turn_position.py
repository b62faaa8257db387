"""Advantages from comparing the rewards of turns with the same number."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.piece import Above, AtLeast, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class TurnPosition:
    """CM2 (arXiv 2602.12268): the turn's reward minus the mean at its position; needs rewards per turn.

    Over the turns number k of the task's paths, and 0 where these are fewer than `min_turns`:

        A = r - mean of r at k

        turn 1      1    0    1    0    1    0        A   .5  -.5   .5  -.5   .5  -.5
        turn 2      1    1    0    0    1             A   .4   .4  -.6  -.6   .4

    With std="group" it is divided by the standard deviation of r at k (ddof 1) plus `epsilon`, an option of the
    released code, which is off there too; the second turn is then .730, .730, -1.095, -1.095, .730. There the deviation
    counts samples whose tools or judge failed unless they are excluded; here such samples are in no group.

    Later turns do not count: a turn has the credit of what it did itself. The published training script has the usual
    group advantage over paths, not this one.

    Attributes:
        min_turns: Minimum number of turns of a group, >= 2.
        std: Whether to divide by the standard deviation of the group.
        epsilon: Added to the standard deviation, > 0.
    """

    min_turns: Annotated[int, AtLeast(2)] = 5
    std: Literal["group", "none"] = "none"
    epsilon: Annotated[float, Above(0)] = 1e-6

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        peers = group_by(view.task[view.path], view.turn)
        advantage = normalize(view.reward, peers, std=self.std, epsilon=self.epsilon)
        few = np.bincount(peers, minlength=1)[peers] < self.min_turns
        return spread_turns(view, np.where(few, 0.0, advantage))
