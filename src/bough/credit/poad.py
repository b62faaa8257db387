"""Generalised advantages over tokens, discounted between actions only."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.returns import ahead, sum_ahead
from bough.credit.valued import Valued, bootstrap_needs, valued_tokens, whiten
from bough.needs import Need, value_head
from bough.piece import Between, piece
from bough.tree import Credited, Floats, Rewarded, mean_over_paths, path_view, spread_tokens


@piece
class Poad:
    """POAD (arXiv 2405.15821): token GAE, discounted between actions only; needs the head "value" of a critic.

    With V_j the value before token j, r the reward of an action, V' the value before the first token of the next
    action, 0 after the last (Bellman backup with action decomposition):

        inside an action    A_j = V_(j+1) - V_j + A_(j+1)
        at its last token   A_j = r + discount * V' - V_j + discount * lam * A'

    So a long action is as close to its reward as a short one. The target of the critic is A_j + V_j. Two
    actions, of two tokens and three; discount 0.9, lam 0.8:

        values          0.1     0.2     |  0.3     0.4     0.5
        reward                  0       |                  1
        POAD            0.674   0.574   |  0.7     0.6     0.5
        as_released     0.444   0.43    |  0.5     0.5     0.5
        ntpo()          0.3145  0.3257  |  0.3552  0.41    0.5
        bootstrap       0.998   0.898   |  1.15    1.05    0.95     truncated in a state of value 0.5

    The released code bootstraps where its fixed-length buffer cuts an episode, as `bootstrap_truncated` does.

    Turns that the policy did not sample are transparent (see `credit/valued.py`). The target of a shared token is the
    mean of its paths' targets. Advantages are whitened over the tokens of all counted paths (ddof 1, + 1e-8), a shared
    token once for each path; the released trainer uses ddof 0 and omits advantages that are exactly 0.

    Attributes:
        discount: In (0, 1]; 0.95 in released code.
        lam: lambda of GAE, in [0, 1]; 0.95 in released code.
        backup: "action" as above. "token" discounts at every token, inside actions too: NTPO, the paper's naive
            baseline. "last" does the same with the value before the last token of the next action, not before its
            first: an option of the released code named ARCHER, which is another method.
        whiten: Whether advantages are whitened.
        bootstrap_truncated: Whether the value after the last action of a truncated path is the critic's value of its
            final state instead of 0.
        as_released: With "action": the recursion decays by `lam` inside actions too (morning9393/ADRL,
            `batch_process_tppo`), so that the credit of a long action fades toward its beginning.
    """

    discount: Annotated[float, Between(0, 1, above=True)] = 0.95
    lam: Annotated[float, Between(0, 1)] = 0.95
    backup: Literal["action", "token", "last"] = "action"
    whiten: bool = True
    bootstrap_truncated: bool = False
    as_released: bool = False

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic, and its bootstrap."""
        return frozenset[Need]({value_head("value")}) | bootstrap_needs(self.bootstrap_truncated)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        valued = valued_tokens(view, "value", bootstrap=self.bootstrap_truncated)
        found = self._advantage(valued)
        advantage = np.zeros(len(view.path_tokens.token))
        advantage[valued.at] = whiten(found) if self.whiten else found
        target = mean_over_paths(view, valued.token, found + valued.value)
        return spread_tokens(view, advantage, {"value": target})

    def _advantage(self, valued: Valued) -> Floats:
        """[V]: the advantage of every sampled token."""
        last = np.append(np.diff(valued.turn) > 0, True)[: len(valued.turn)]
        after = ahead(valued.value, valued.start, valued.end)
        if self.backup == "last":
            after[last] = ahead(valued.value[last], np.searchsorted(np.flatnonzero(last), valued.start), valued.end)
        inside = (1.0, self.lam if self.as_released else 1.0)
        if self.backup != "action":
            inside = (self.discount, self.discount * self.lam)
        discount = np.where(last, self.discount, inside[0])
        decay = np.where(last, self.discount * self.lam, inside[1])
        return sum_ahead(valued.reward + discount * after - valued.value, decay, valued.start)


def ntpo() -> Poad:
    """NTPO (arXiv 2405.15821): token GAE, discounted at every token; needs the head "value" of a critic."""
    return Poad(backup="token")
