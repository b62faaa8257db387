"""Generalised advantage estimation over tokens, with a critic."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.returns import gae
from bough.credit.valued import bootstrap_needs, valued_tokens, whiten
from bough.needs import KL_IN_REWARD, REFERENCE, Need, value_head
from bough.piece import AtLeast, Between, piece
from bough.tree import Credited, Rewarded, mean_over_paths, path_view, spread_tokens


@piece
class Gae:
    """PPO's GAE over tokens (arXiv 1506.02438); needs the head "value" of a critic.

    Over the sampled tokens of a path, with V_j the value before token j, r_j the reward at it (a turn's
    reward is at its last token), and a value of 0 after the last token of the path:

        delta_j = r_j + discount * V_(j+1) - V_j        A_j = delta_j + discount * lam * A_(j+1)

    Observations are transparent: they add no discount. The target of the critic is A_j + V_j. Then A is
    whitened: minus the mean, over the standard deviation (ddof 1) + 1e-8, over all trained tokens of all counted paths,
    a shared token once for each path. An observation lies between the second token and the third:

        values        0.2      0.4             0.6      0.8       discount 0.9
        rewards       0        0               0        1         lam      0.8
        advantages    0.3977   0.3301          0.264    0.2
        targets       0.5977   0.7301          0.864    1.0

    With `bootstrap_truncated` the value after the last token of a truncated path is V of its final state (section 3 of
    the paper: the sums continue there); verl has 0. Truncated after the fourth token, where V is 0.5:

        advantages    0.5656   0.5634          0.588    0.65

    Turns that the policy did not sample are transparent too (see `credit/valued.py`). The target of a shared token is
    the mean of its paths' targets.

    Released code (verl, `compute_gae_advantage_return`) whitens by sqrt(variance + 1e-8) (`as_released`). There the
    whitened advantages of observations are not 0 and the loss masks them; here observations have none.

    Attributes:
        discount: Per token, in (0, 1]. At 1 the number of tokens has no effect.
        lam: lambda of GAE, in [0, 1]; 1 is the return minus the value, 0 the one-step temporal difference.
        kl: Coefficient, >= 0, of the divergence log policy - log reference at each token, subtracted from the reward;
            0 needs no reference.
        whiten: Whether advantages are whitened.
        bootstrap_truncated: Whether the value after the last token of a truncated path is the critic's value of its
            final state instead of 0.
        as_released: Whether whitening divides by sqrt(variance + 1e-8) instead of standard deviation + 1e-8.
    """

    discount: Annotated[float, Between(0, 1, above=True)] = 1.0
    lam: Annotated[float, Between(0, 1)] = 1.0
    kl: Annotated[float, AtLeast(0)] = 0.0
    whiten: bool = True
    bootstrap_truncated: bool = False
    as_released: bool = False

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic, its bootstrap, and the reference when the divergence is in the reward."""
        reference = frozenset({REFERENCE} if self.kl else ())
        return frozenset({value_head("value")}) | reference | bootstrap_needs(self.bootstrap_truncated)

    @property
    def gives(self) -> frozenset[Need]:
        """The divergence in the reward."""
        return frozenset({KL_IN_REWARD} if self.kl else ())

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        valued = valued_tokens(view, "value", bootstrap=self.bootstrap_truncated)
        reward = valued.reward
        if self.kl:
            reward = reward - self.kl * (view.of_tokens("logprob") - view.of_tokens("reference"))[valued.token]
        decay = self.discount * self.lam
        found = gae(reward, valued.value, valued.start, discount=self.discount, decay=decay, end=valued.end)
        advantage = np.zeros(len(view.path_tokens.token))
        guard = "variance" if self.as_released else "added"
        advantage[valued.at] = whiten(found, guard=guard) if self.whiten else found
        target = mean_over_paths(view, valued.token, found + valued.value)
        return spread_tokens(view, advantage, {"value": target})
