"""Advantages for the part of a completion that sets a subgoal."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np

from bough.credit.grpo import Grpo
from bough.credit.marks import marked, spans
from bough.needs import Need, annotation
from bough.piece import Between, piece
from bough.tree import Credited, Rewarded, path_view, spread_tokens


@piece
class Foresight:
    """Experimental: Hi-Agent's foresight advantage (arXiv 2510.14388): GRPO on subgoals; needs a parser of them.

    The exact formula was not available here. In the paper a planner proposes several subgoals for a
    state. Each is scored by the executor's result, and the scores, normalised over the proposals, train only the
    planner. Here one policy samples subgoal and action, and with A the advantage of `base` for a path:

        a token inside a subgoal gets A, every other one gets rest * A

        answer    open the door ; go east
        rest=0    A    A   A    0 0  0

    A turn sets a subgoal when its annotation "subgoal" is true; its tokens are the span of that name. A turn that keeps
    the subgoal of an earlier one is all action.

    Attributes:
        base: The advantages of paths: what came of their subgoals.
        rest: Fraction of the advantage that the other tokens get, in [0, 1]; 0 trains the planner alone, 1 is `base`.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({annotation("subgoal")})

    base: Grpo = Grpo()
    rest: Annotated[float, Between(0, 1)] = 0.0

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        step = view.path_tokens.step
        count = view.tokens
        place = np.arange(len(step)) - (np.cumsum(count) - count)[step]
        first, end = spans(view, "subgoal")
        inside = (place >= first[step]) & (place < end[step]) & marked(view, "subgoal")[step]
        advantage = self.base.of_paths(view)[view.path][step]
        return spread_tokens(view, np.where(inside, advantage, self.rest * advantage))
