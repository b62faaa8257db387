"""Targets of a token-level Q-function by B-Coder's conservative Bellman operator."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.returns import ahead
from bough.credit.valued import valued_tokens
from bough.needs import GREEDY, Need, value_head
from bough.piece import Above, Between, piece
from bough.tree import Credited, Rewarded, mean_over_paths, path_view, spread_tokens


@piece
class ConservativeBellman:
    """B-Coder's conservative Bellman operator (arXiv 2310.03173): TD targets of a token Q; needs the head "value".

    The policy is the Q-function: Q(s, a) = V(s) + tau * log p(a | s), with V a value head. So it starts from the
    policy before the run, and its best action is the policy's. The target of token j takes, in the next state, not the
    best action of Q, but the most probable token g of the frozen reference policy, with Q before the update:

        target_j = r_j + discount * (V_(j+1) + tau * log p(g_(j+1)))          target of the last token: r

    r is the reward of an action, at its last token. The greedy reference policy is fixed, so the operator evaluates it;
    the policy that is greedy in the result is one step better. Two tokens, reward 1, tau .5, discount 1:

        V                  .2    .4
        log p(g)          -.1   -.3
        log p             -1    -.5
        target             .25   1          advantage, target - Q: .55, .85

    `TokenQ` is the loss, with the same tau. The targets may come from any policy, so batches may be used several times.
    The paper's Q is V plus the logit minus the largest logit; here the baseline is the soft maximum, with which the
    policy is the soft maximum of Q. A truncated path is taken as ended.

    Attributes:
        tau: Q per nat of log-probability, > 0.
        discount: Per token, in [0, 1].
    """

    needs: ClassVar[frozenset[Need]] = frozenset({GREEDY, value_head("value")})
    compares: ClassVar[Literal["nothing"]] = "nothing"

    tau: Annotated[float, Above(0)] = 0.1
    discount: Annotated[float, Between(0, 1)] = 1.0

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        valued = valued_tokens(view, "value")
        greedy = valued.value + self.tau * view.of_tokens("greedy")[valued.token]
        target = valued.reward + self.discount * ahead(greedy, valued.start, valued.end)
        advantage = np.zeros(len(view.path_tokens.token))
        advantage[valued.at] = target - valued.value - self.tau * view.of_tokens("logprob")[valued.token]
        return spread_tokens(view, advantage, {"value": mean_over_paths(view, valued.token, target)})
