"""Imitation of the best of several actions in one state, by a critic of whole turns."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from bough.credit.archer import Archer
from bough.credit.branches import place_of
from bough.credit.keys import group_by
from bough.needs import Need, estimate
from bough.piece import piece
from bough.tree import Credited, Rewarded, path_view, spread_turns


@piece
class BestCandidate:
    """Best-of-N policy extraction (Digi-Q, arXiv 2502.15760): the best action of a state gets 1, if it is good.

    For losses on positive advantages (`Imitation`), with trees that have several actions in a state (`Slate`,
    `FullTree`). With Q and V of a critic of whole turns, and A = min(Q_1, Q_2) - min(V_1, V_2), the action of highest A
    among those of a state gets 1 if A exceeds the threshold, all others 0; equal ones share it. Four actions of one
    state:

        A    .1  -.2   .3   .2        threshold 0:  0  0  1  0        threshold .4:  0  0  0  0

    The returns of the paths have no effect.

    Attributes:
        threshold: Least advantage of an action that is imitated.
    """

    needs: ClassVar[frozenset[Need]] = frozenset(map(estimate, ("q1", "q2", "v1", "v2")))
    compares: ClassVar[Literal["nothing"]] = "nothing"

    threshold: float = 0.0

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        _, first, which = np.unique(view.node, return_index=True, return_inverse=True)
        gain = Archer().of_turns(view)[first]
        place = group_by(place_of(view)[first])
        best = np.full(int(place.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(best, place, gain)
        chosen = (gain > self.threshold) & (gain >= best[place])
        return spread_turns(view, chosen.astype(np.float64)[which])
