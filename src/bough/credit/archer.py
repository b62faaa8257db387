"""Turn-level advantages from a critic of whole turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns
from bough.tree.needs import Need, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Archer:
    """ArCHer (arXiv 2402.19446): a turn is as good as Q says it beats V; no groups; needs an `UtteranceCritic`.

    With twin estimates of the value of the turn, Q_i(s, a), and of what was read before it, V_i(s):

        A = min(Q_1, Q_2) - min(V_1, V_2)        q 0.7 0.5, v 0.6 0.2   ->   A = 0.5 - 0.2 = 0.3

    and every token of the turn gets A. The loss that belongs to it is that of a policy gradient at freshly sampled
    actions, without a ratio (`Reinforce`), with one optimizer step for each batch. As the lesser of two estimates, Q
    and V are both biased down; their difference need not be, nor need it have a mean of 0.

    The paper's baseline within a turn, a value at each of its tokens that is taken off A, is left out: it lowers the
    variance that a turn of many tokens has, and changes no mean.
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"
    needs: ClassVar[frozenset[Need]] = frozenset(map(estimate, ("q1", "q2", "v1", "v2")))

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.of_turns(view))

    def of_turns(self, view: PathView) -> Floats:
        """[S] float64: the advantage of each turn of a batch; 0 where nothing was written."""
        lengths = view.lengths
        first = (np.cumsum(lengths) - lengths)[view.node]
        wrote = lengths[view.node] > 0
        q1, q2, v1, v2 = (view.of_tokens(name)[first[wrote]] for name in ("q1", "q2", "v1", "v2"))
        advantage = np.zeros(len(view.node), dtype=np.float64)
        advantage[wrote] = np.minimum(q1, q2) - np.minimum(v1, v2)
        return advantage
