"""Advantages of steps: the change of the mean outcome over each."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.credit.branches import rise, value_after, value_before
from bough.tree import Credited, Rewarded, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePs:
    """Experimental: TreePS-RAG (arXiv 2601.06922): a step's rise in mean outcome; needs a branching tree.

    A node is one turn, and its value the mean return of the counted paths through it. Every token of turn t of a path
    gets

        A_t = V(turn t) - V(turn t - 1),      V(turn 0) being the mean over the paths of the task

    so the advantages along a path add up to its return minus that mean. Two branches at the prompt: the
    first has two below it with returns 1 and 0, the second two with return 0:

        first +0.25, below it +0.5 and -0.5      second -0.25, below it 0 and 0

    A turn after which the tree does not fork has the value of the one before, and gets 0: the method is for trees that
    fork at most turns. A turn with a fork inside is split there into nodes. For trees that fork at few turns,
    `SegmentPo(certain=1.0)` gives the same rise to all turns between forks.

    This follows the abstract and summaries; no code was found. Whether the paper subtracts other baselines,
    divides or weighs by the number of leaves is not known. `TreeRl` has a term for the prompt and such a weight.
    """

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded).by_fork
        return spread_turns(view, rise(value_after(view, view.returns), value_before(view, view.returns)))
