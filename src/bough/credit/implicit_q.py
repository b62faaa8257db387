"""The log ratio of the policy to its reference as the advantage of each token."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.grpo import Grpo
from bough.needs import REFERENCE, Need
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, path_view, spread_tokens


@piece
class ImplicitQ:
    """From r to Q* (arXiv 2404.12358): A of a token is beta * log (policy / reference); needs a reference.

    For a policy that DPO has trained, the value is the soft advantage of a token in the process whose actions are
    tokens, under the reward that the preferences imply:

        beta * log (policy(a | s) / reference(a | s)) = Q*(s, a) - V*(s)

    and its sum over a path is the path's implicit reward less a constant of the prompt. Three tokens of log-probability
    -.2 -.4 -3 under the policy and -1.2 -.3 -1 under the reference, beta .1:   .1   -.01   -.2

    The paper reads credit from a trained policy and does not train on it. At the start of a run, where the policy is
    the reference, it is 0; with `base` the advantages of that rule are added. The policy's log-probabilities are those
    at the sampling temperature.

    Attributes:
        beta: The strength of the pull to the reference in DPO, > 0.
        base: The advantages of paths that are added; None for none.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({REFERENCE})
    compares: ClassVar[Literal["nothing"]] = "nothing"

    beta: Annotated[float, Above(0)] = 0.1
    base: Grpo | None = None

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        tokens = view.path_tokens
        ratio = view.of_tokens("logprob") - view.of_tokens("reference")
        advantage = np.where(view.sampled[tokens.token], self.beta * ratio[tokens.token], 0.0)
        if self.base is not None:
            advantage = advantage + self.base.of_paths(view)[view.path][tokens.step]
        return spread_tokens(view, advantage)
