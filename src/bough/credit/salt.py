"""Advantages averaged over the paths that share a step."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np

from bough.credit.grpo import Grpo
from bough.credit.keys import group_by
from bough.credit.normalize import mean_at
from bough.credit.states import earlier, key_after, written_key
from bough.needs import STATE_KEYS, Need
from bough.piece import AtLeast, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns


@piece
class Salt:
    """Experimental: SALT (arXiv 2510.20022): steps shared by paths get the mean of theirs; needs state keys.

    The paths of a task are merged into a graph whose nodes are states and whose edges are actions. With A_p the
    advantage of path p by `base`, an edge of several paths gives all of them the mean of their A_p; an edge of
    one path keeps its own:

        A_(p,t) = mean of A_q over the paths q that took the edge of (p, t)

    An edge of three paths with A = 1, -1, -1 has -1/3. Two turns are one edge when they have the same
    state, the same tokens and the same next state; with `history` also the same states before. An
    unknown state matches no other.

    This follows the paper's abstract and its reviews; no code was found. How steps are matched, the length of
    the history and whether advantages are normalised again are choices made here. A path that takes an edge twice
    counts once.

    Attributes:
        base: The rule for the advantages of paths.
        history: Number of states before the current one that must also be equal.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({STATE_KEYS})

    base: Grpo = Grpo()
    history: Annotated[int, AtLeast(0, "0 or more")] = 0

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.share(view, self._edges(view)))

    def share(self, view: PathView, edge: Ints) -> Floats:
        """[S] float64: the mean advantage of the paths that took each turn's edge [S]."""
        advantage = self.base.of_paths(view)[view.path]
        crossing = group_by(edge, view.path)
        once = np.zeros(int(crossing.max(initial=-1)) + 1, dtype=np.int64)
        once[crossing] = np.arange(len(crossing))
        return mean_at(advantage[once], edge[once])[crossing]

    def _edges(self, view: PathView) -> Ints:
        states = [key_after(view), *(earlier(view, view.key, back) for back in range(self.history + 1))]
        unknown = np.any([state == 0 for state in states], axis=0)
        alone = np.where(unknown, np.arange(1, len(view.key) + 1), 0)
        return group_by(view.task[view.path], written_key(view), alone, *states)
