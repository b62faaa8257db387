"""Advantages with a bonus for uncertain thinking."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.empg import entropy_of
from bough.credit.grpo import Grpo
from bough.credit.marks import spans
from bough.needs import ENTROPIES, Need, annotation
from bough.piece import Above, AtLeast, piece
from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns, sum_at


@piece
class Egpo:
    """EGPO (FunRL, arXiv 2508.05118): raises advantages by the entropy of the thinking, bounded; needs entropies.

    With A the advantage of the path by `base`, and H the mean entropy of the tokens of a turn's thinking under the
    sampling policy, a constant without gradient:

        A' = A + min(alpha H, |A| / kappa)

        A     1    1   -1   -1    0
        H    .5    5   .5    5    5
        A'  1.2  1.5  -.8  -.5    0

    The bonus never changes the sign, and a path without an advantage gets none. A turn without thinking gets none.
    The paper's formula was not found; this is the form of reasoning with exploration (arXiv 2506.14758), with its
    constants.

    Attributes:
        base: The rule for the advantages of paths.
        alpha: Weight of the entropy, >= 0.
        kappa: The bonus is at most |A| / kappa; above 1.
        mark: The annotation of the thinking, such as "thought" of `ThinkingCalls`; "" for all tokens of a turn.
    """

    base: Grpo = Grpo()
    alpha: Annotated[float, AtLeast(0, "0 or more")] = 0.4
    kappa: Annotated[float, Above(1, "a number above 1, so that no advantage changes sign")] = 2.0
    mark: str = ""

    @property
    def needs(self) -> frozenset[Need]:
        """Entropies, and the annotation."""
        return frozenset({ENTROPIES, *({annotation(self.mark)} if self.mark else set[Need]())})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        entropy = span_entropy(view, self.mark) if self.mark else entropy_of(view)
        return spread_turns(view, self.raised(self.base.of_paths(view)[view.path], entropy))

    def raised(self, advantage: Floats, entropy: Floats) -> Floats:
        """[S] float64: advantages [S] with the bonus by entropies [S], nan where unknown."""
        return advantage + np.minimum(self.alpha * np.nan_to_num(entropy), np.abs(advantage) / self.kappa)


def span_entropy(view: PathView, mark: str) -> Floats:
    """[S] float64: the mean entropy of the tokens in the span `mark` of each turn, nan where none is known."""
    tokens, (begin, end) = view.path_tokens, spans(view, mark)
    entropy = view.of_tokens("entropy")[tokens.token]
    place = np.arange(len(tokens.step)) - np.repeat(np.cumsum(view.tokens) - view.tokens, view.tokens)
    inside = (place >= begin[tokens.step]) & (place < end[tokens.step]) & ~np.isnan(entropy)
    step, turns = tokens.step[inside], len(view.path)
    count = np.bincount(step, minlength=turns)
    return np.where(count > 0, sum_at(step, entropy[inside], turns) / np.maximum(count, 1), np.nan)
