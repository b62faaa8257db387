"""Advantages from the scores that a step got when it was written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bough.credit.branches import place_of
from bough.credit.keys import group_by
from bough.credit.normalize import normalize
from bough.tree import Credited, Rewarded, path_view, spread_turns, turn_info
from bough.tree.needs import CANDIDATE_SCORES, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class SlateCredit:
    """SLATE (arXiv 2602.23440): candidates for one turn, by how they were judged; needs `explore.Slate`'s trees.

    With q the "quality" in the info of an action, and ddof 1 over the candidates of one place, each of which counts
    once however many paths go on from it:

        A = (q - mean of q) / (std of q + epsilon)

    Judged 2 1 0 0 -1:    A 1.403 0.526 -0.351 -0.351 -1.228

    for every token of the action. What a path comes to in the end counts nothing: an action that only pays later, in a
    way that the judge does not see, gets no credit. In exchange the luck of the turns before and after stays out of it:
    where the rewards of T turns are independent, the differences that returns are compared by have T times the
    variance. Where rewards of turns go up and down together it is more than T times, where they make up for each other
    less. Dividing by the deviation (`scale`) hides this.

    An action that nobody judged gets 0, and so does one without others to compare with, where the authors' code
    (`slate/training/step_level_algos.py`) has nan for k = 1. As a loss counts an action once for each path through it,
    take `Normalizer(by="unique_tokens")`, or the turns that were done weigh more than those that were not.

    Attributes:
        scale: Whether to divide by the standard deviation.
        epsilon: Added to it, > 0.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CANDIDATE_SCORES})
    compares: ClassVar[Literal["nothing"]] = "nothing"

    scale: bool = True
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(f"SlateCredit.epsilon: got {self.epsilon}; need a number above 0")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = path_view(rewarded)
        nodes, first, which = np.unique(view.node, return_index=True, return_inverse=True)
        said = turn_info(view, "quality")
        value = np.asarray([_number(said[step]) for step in first.tolist()], dtype=np.float64)
        known = ~np.isnan(value)
        place = group_by(place_of(view)[first][known])
        advantage = np.zeros(len(nodes))
        std = "group" if self.scale else "none"
        advantage[known] = normalize(value[known], place, std=std, epsilon=self.epsilon)
        return spread_turns(view, advantage[which])


def _number(said: object) -> float:
    return float(said) if isinstance(said, int | float) else float("nan")
