"""Advantages from comparing the branches of each fork."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.branches import mean_of_children, place_of, stem_of, trunk_of
from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.piece import Above, Between, piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class TreeRpo:
    """Experimental: TreeRPO (arXiv 2506.05183): the branches of a fork are a group; needs a branching tree.

    A node of the paper is a run of turns without a fork (`stem_of`). The value of one that ends a path is the path's
    return, that of any other the mean over its branches, however many paths each has. Within the branches of one fork,
    with ddof 1:

        A = (V - mean of V) / (std of V + epsilon)

    for every token of the run. The prompts of a task are one fork. Two branches at the prompt: the first
    has two below it with returns 1 and 0, the second two with return 0:

        first 0.707, below it 0.707 and -0.707      second -0.707, below it 0 and 0

    A fork with tied branches gives no signal. The advantage compares a branch only at its own fork:
    below a hopeless branch, the better of two gets as much as below a good one.

    Written from the formula, as the authors' repository is empty; their deviation may have ddof 0, which makes the
    above 1 and -1. They grow a full tree, 8 branches at each of 3 depths.

    Attributes:
        within_chains: Whether branches are compared with those of their own chain only, where several chains begin at
            the prompt: those of `RollIns` differ in where they fork and in their policies, so their returns do not
            compare. A chain that does not fork at the prompt has no signal before its first fork.
        ddof: Subtracted from the number of branches in the standard deviation, 0 or 1.
        epsilon: Added to the standard deviation, > 0.
    """

    within_chains: bool = False
    ddof: Annotated[int, Between(0, 1, "0 or 1")] = 1
    epsilon: Annotated[float, Above(0)] = 1e-6

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded).by_fork
        value, segment = mean_of_children(view, view.returns)
        place = place_of(view)
        if self.within_chains:
            place = group_by(place, trunk_of(view)[view.path])
        fork = np.zeros(len(value), dtype=np.int64)
        fork[segment] = place[stem_of(view)]
        return spread_turns(view, normalize(value, fork, std="group", ddof=self.ddof, epsilon=self.epsilon)[segment])
