"""Generalised advantage estimation over turns, with a critic."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.returns import gae
from bough.credit.valued import bootstrap_needs, valued_turns, whiten
from bough.needs import Need, value_head
from bough.piece import Between, piece
from bough.tree import Credited, Rewarded, mean_over_paths, path_view, spread_turns


@piece
class TurnPpo:
    """Turn-PPO (arXiv 2512.17008), experimental: GAE over turns; needs the head "value" of a critic.

    A turn is one action of a process whose state is the whole context. V_t is the value before the first token of turn
    t, r_t its reward. The value after the last turn is 0, or the critic's with `bootstrap_truncated`:

        delta_t = r_t + discount * V_(t+1) - V_t        A_t = delta_t + discount * lam * A_(t+1)

    Every token of the turn gets A_t; the critic's only target of the turn is A_t + V_t, at its first token.
    Two turns with rewards 0 and 1, values 0.2 and 0.6, discount 0.9 and lam 0.8:

        A_2 = 1 - 0.6 = 0.4        A_1 = 0.9 * 0.6 - 0.2 + 0.72 * 0.4 = 0.628

    Truncated in a state of value 0.5, and bootstrapped: A_2 = 1 + 0.9 * 0.5 - 0.6 = 0.85, A_1 = 0.952.

    Experimental: this follows the paper's description; its code was not found. It does not specify how advantages are
    scaled; here they are whitened over the turns of all counted paths (ddof 1, + 1e-8), a shared turn once for each
    path. Turns that the policy did not sample are transparent (see `credit/valued.py`) and get no credit. The paper
    clips the ratio of a whole turn; a loss over tokens works as well.

    Attributes:
        discount: Per turn, in (0, 1].
        lam: lambda of GAE, in [0, 1].
        whiten: Whether advantages are whitened.
        bootstrap_truncated: Whether the value after the last turn of a truncated path is the critic's value of its
            final state instead of 0.
    """

    discount: Annotated[float, Between(0, 1, above=True)] = 0.99
    lam: Annotated[float, Between(0, 1)] = 0.9
    whiten: bool = True
    bootstrap_truncated: bool = False

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic, and its bootstrap."""
        return frozenset[Need]({value_head("value")}) | bootstrap_needs(self.bootstrap_truncated)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        valued = valued_turns(view, "value", bootstrap=self.bootstrap_truncated)
        decay = self.discount * self.lam
        found = gae(valued.reward, valued.value, valued.start, discount=self.discount, decay=decay, end=valued.end)
        advantage = np.zeros(len(view.path))
        advantage[valued.at] = whiten(found) if self.whiten else found
        return spread_turns(view, advantage, {"value": mean_over_paths(view, valued.token, found + valued.value)})
