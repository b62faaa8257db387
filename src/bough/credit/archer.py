"""Turn-level advantages from a critic of whole turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bough.needs import Need, estimate
from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Archer:
    """ArCHer (arXiv 2402.19446): turn advantage Q - V from a critic; no groups; needs an `UtteranceCritic`.

    With twin estimates of the value of the turn, Q_i(s, a), and of its context, V_i(s):

        A = min(Q_1, Q_2) - min(V_1, V_2)        q 0.7 0.5, v 0.6 0.2   ->   A = 0.5 - 0.2 = 0.3

    and every token of the turn gets A. The loss of the method is that of a policy gradient at freshly sampled
    actions, without a ratio (`Reinforce`), with one optimizer step for each batch. As the lesser of two estimates, Q
    and V are both biased down; their difference need not be, nor need its mean be 0.

    The paper also subtracts from A a token-level baseline within the turn. It is omitted here: it lowers the variance
    of long turns and leaves every mean unchanged.
    """

    compares: ClassVar[Literal["nothing"]] = "nothing"
    needs: ClassVar[frozenset[Need]] = frozenset(map(estimate, ("q1", "q2", "v1", "v2")))

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.of_turns(view))

    def of_turns(self, view: PathView) -> Floats:
        """[S] float64: the advantage of each turn of a batch; 0 where the policy sampled no token."""
        lengths = view.lengths
        first = (np.cumsum(lengths) - lengths)[view.node]
        wrote = lengths[view.node] > 0
        q1, q2, v1, v2 = (view.of_tokens(name)[first[wrote]] for name in ("q1", "q2", "v1", "v2"))
        advantage = np.zeros(len(view.node), dtype=np.float64)
        advantage[wrote] = np.minimum(q1, q2) - np.minimum(v1, v2)
        return advantage
