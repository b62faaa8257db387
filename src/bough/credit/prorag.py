"""ProRAG's advantages of two granularities: the outcome of a path, and a learned score of its turns."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.grpo import Grpo
from bough.credit.normalize import normalize
from bough.needs import Need, estimate
from bough.piece import Above, AtLeast, piece
from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns


@piece
class ProRag:
    """ProRAG (arXiv 2601.21912): the z-score of a path's return, plus that of a learned score of each turn.

        A = (R - mean) / std over the paths of the task + beta * (s - mean) / std over the tokens of the task

    R is the return and s the estimate "step_score" of the turn, which is at each of its tokens; so a long turn counts
    more in the second mean. Two paths of a task with two turns of two tokens each, beta .5:

        R           1                0
        s       2       0        1       1        mean 1, std .7559 with ddof 1
        A    1.3685   .0457   -.7071  -.7071

    Without differences between the returns the second term remains; with equal scores it is 0. The released code has
    ddof 0 and sqrt(variance + 1e-8) in the second term, and adds 1e-4 in the first (`as_released`): 1.4141, 0, -.7070,
    -.7070.

    Attributes:
        beta: Weight of the second term, >= 0; .5 in the paper, .3 in the released script.
        epsilon: Added to both standard deviations, > 0.
        as_released: Whether the divisors are those of the released code.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({estimate("step_score")})
    compares: ClassVar[Literal["nothing"]] = "nothing"

    beta: Annotated[float, AtLeast(0)] = 0.5
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        outcome = Grpo(epsilon=1e-4 if self.as_released else self.epsilon).of_paths(view)
        return spread_turns(view, outcome[view.path] + self.beta * self.of_turns(view))

    def of_turns(self, view: PathView) -> Floats:
        """[S] float64: the z-score of each turn's score over the tokens of the task's paths; 0 without a score."""
        lengths = view.lengths
        score = np.full(len(view.node), np.nan)
        wrote = lengths[view.node] > 0
        score[wrote] = view.of_tokens("step_score")[(np.cumsum(lengths) - lengths)[view.node[wrote]]]
        known = ~np.isnan(score)
        value, task, tokens = score[known], view.task[view.path][known], view.tokens[known].astype(np.float64)
        found = np.zeros(len(view.node), dtype=np.float64)
        if self.as_released:
            found[known] = normalize(value, task, weight=tokens, ddof=0, epsilon=1e-8, guard="variance")
        else:
            found[known] = normalize(value, task, weight=tokens, epsilon=self.epsilon)
        return found
