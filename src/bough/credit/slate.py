"""Advantages from the scores of steps, judged when they were sampled."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.branches import place_of
from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.needs import CANDIDATE_SCORES, Need
from bough.piece import Above, piece
from bough.tree import Credited, Rewarded, join, path_view, spread_turns


@piece
class SlateCredit:
    """SLATE (arXiv 2602.23440): judged candidates for one turn are compared; needs `explore.Slate`'s trees.

    With q the `rating` of an action, and ddof 1 over the candidates after one node, each of which counts
    once however many paths continue from it:

        A = (q - mean of q) / (std of q + epsilon)

    With scores 2 1 0 0 -1:    A 1.403 0.526 -0.351 -0.351 -1.228

    for every token of the action. The path's return has no effect: an action whose benefit comes later, and that
    the judge does not score, gets no credit. In exchange the noise of the other turns is excluded:
    where the rewards of T turns are independent, differences of returns have T times the
    variance. With positively correlated rewards it is more than T times, with negatively correlated ones
    less. Dividing by the deviation (`scale`) hides this.

    An action without a score gets 0, and so does one without others to compare with, where the authors' code
    (`slate/training/step_level_algos.py`) has nan for k = 1. As a loss counts an action once for each path through it,
    use `Normalizer(by="unique_tokens")`; otherwise executed turns weigh more than the others.

    Attributes:
        scale: Whether to divide by the standard deviation.
        epsilon: Added to it, > 0.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CANDIDATE_SCORES})
    compares: ClassVar[Literal["nothing"]] = "nothing"

    scale: bool = True
    epsilon: Annotated[float, Above(0)] = 1e-6

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        nodes, first, which = np.unique(view.node, return_index=True, return_inverse=True)
        value = join(view.rewarded, "rating")[nodes]
        known = ~np.isnan(value)
        place = group_by(place_of(view)[first][known])
        advantage = np.zeros(len(nodes))
        std = "group" if self.scale else "none"
        advantage[known] = normalize(value[known], place, std=std, epsilon=self.epsilon)
        return spread_turns(view, advantage[which])
