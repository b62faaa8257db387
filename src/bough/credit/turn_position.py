"""Advantages from comparing the rewards of turns with the same number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.tree import Credited, Rewarded, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPosition:
    """CM2 (arXiv 2602.12268): the turn's reward minus the mean at its position; needs rewards per turn.

    Over the turns number k of the task's paths, and 0 where these are fewer than `min_turns`:

        A = r - mean of r at k

        turn 1      1    0    1    0    1    0        A   .5  -.5   .5  -.5   .5  -.5
        turn 2      1    1    0    0    1             A   .4   .4  -.6  -.6   .4

    Later turns do not count: a turn has the credit of what it did itself. The published training script has the usual
    group advantage over paths, not this one.

    Attributes:
        min_turns: Minimum number of turns of a group, >= 2.
    """

    min_turns: int = 5

    def __post_init__(self) -> None:
        if self.min_turns < 2:
            raise ValueError(f"TurnPosition.min_turns: got {self.min_turns}; need at least 2")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        peers = group_by(view.task[view.path], view.turn)
        advantage = normalize(view.reward, peers, std="none")
        few = np.bincount(peers, minlength=1)[peers] < self.min_turns
        return spread_turns(view, np.where(few, 0.0, advantage))
