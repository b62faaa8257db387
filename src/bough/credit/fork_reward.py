"""Branches of a fork compared by the reward up to the next fork."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.branches import place_of, stem_of
from bough.credit.normalize import mean_at, normalize
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns, sum_at


@piece
class ForkReward:
    """Experimental: Hi-Agent's foresight advantage (arXiv 2510.14388), branches by the reward up to the next fork.

    A branch is a run of turns from a fork to the next (`stem_of`). Its value is the sum of the rewards in it; where
    that differs, as with several tries of an executor at one subgoal, their mean. Among the branches of a fork, ddof 1:

        A = (V - mean of V) / (std of V + epsilon)

    for every token of the branch. What comes after the next fork has no effect. A planner's subgoals whose tries earn
    1 0, 0 0 and 1 1 have the values .5, 0 and 1:

        planner    0   -1   1        executor, first subgoal    .707   -.707

    The prompts of a task are one fork. A branch alone, and tied branches, get 0. With seats each has its own forks and
    so an advantage of its own: an executor's tries at one subgoal are a fork of the executor. The reward of a
    seat's turn contains that of other seats' actions before its next. Written from the abstract.

    Attributes:
        epsilon: Added to the standard deviation, > 0.
    """

    epsilon: Annotated[float, Above(0)] = 1e-6

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        stem = stem_of(view)
        begin, which = np.unique(stem, return_inverse=True)
        earned = sum_at(which, view.reward, len(begin))
        # What follows a branch tells its tries apart: the next turn's place, or the end of the path.
        last = np.append(begin[1:], len(stem))[: len(begin)] - 1
        ends = view.last[last]
        after = np.where(ends, view.leaf[view.path[last]], np.append(view.place, 0)[last + 1])
        node = view.node[begin]
        tries, at = np.unique(np.stack([node, after]), axis=1, return_index=True)[:2]
        branches, first, branch = np.unique(tries[0], return_index=True, return_inverse=True)
        value, fork = mean_at(earned[at], branch)[first], place_of(view)[begin[at]][first]
        advantage = normalize(value, fork, std="group", epsilon=self.epsilon)
        return spread_turns(view, advantage[np.searchsorted(branches, node)][which])
