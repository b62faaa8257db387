"""No advantage for turns of very low or very high perplexity."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from bough.credit.credit import Credit, compares_with
from bough.credit.filtered import Filtered
from bough.tree import Bools, Credited, Floats, PathView, Rewarded, path_view, sum_at


@dataclass(frozen=True, slots=True, kw_only=True)
class PerplexityBand:
    """BFS-Prover-V2's filter of tactics (arXiv 2509.06493): turns between two quantiles of perplexity keep advantages.

        perplexity of a turn = exp(- mean log-probability of its tokens when they were sampled)

    Very likely turns teach the policy nothing, and very unlikely ones are often noise. The quantiles are over the turns
    of the batch with a non-zero advantage by `credit`, each turn once; the advantage of a turn outside is 0. Turns
    without log-probabilities keep theirs. Perplexities 1, 1.1, 2, 3, 40 with the quantiles .25 and .75: the turns with
    1.1, 2 and 3 stay.

    The paper keeps the middle of the distribution; the quantiles are settings of Bough.

    Attributes:
        credit: The rule for the advantages.
        low: The lower quantile, in [0, 1].
        high: The upper quantile, above `low`, up to 1.
    """

    credit: Credit = field(default_factory=Filtered)
    low: float = 0.1
    high: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"PerplexityBand: got low={self.low}, high={self.high}; need 0 <= low < high <= 1")

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """That of `credit`."""
        return compares_with(self.credit)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        credited = self.credit(rewarded)
        view = path_view(rewarded)
        advantage = np.concatenate([np.zeros(0), *(each.path_advantage for each in credited)])
        outside = self._outside(view, advantage)[view.path_tokens.step]
        end = np.cumsum([0, *(len(each.path_advantage) for each in credited)]).tolist()
        return [
            replace(each, path_advantage=np.where(outside[end[at] : end[at + 1]], 0.0, each.path_advantage))
            for at, each in enumerate(credited)
        ]

    def _outside(self, view: PathView, advantage: Floats) -> Bools:
        """[S] bool: the turns whose perplexity is outside the quantiles."""
        perplexity = perplexity_of(view)
        learned = np.zeros(len(view.path), dtype=np.bool_)
        learned[view.path_tokens.step[advantage != 0]] = True
        known = learned & ~np.isnan(perplexity)
        if not known.any():
            return np.zeros(len(view.path), dtype=np.bool_)
        # Paths share turns.
        _, once = np.unique(view.node[known], return_index=True)
        low, high = np.quantile(perplexity[known][once], [self.low, self.high])
        return known & ~((perplexity >= low) & (perplexity <= high))


def perplexity_of(view: PathView) -> Floats:
    """[S] float64: the perplexity of each turn when it was sampled; nan without log-probabilities."""
    logprob = view.of_tokens("logprob")[view.path_tokens.token]
    known, turns = ~np.isnan(logprob), len(view.path)
    step = view.path_tokens.step[known]
    count = np.bincount(step, minlength=turns)
    total = sum_at(step, logprob[known].astype(np.float64), turns)
    return np.where(count > 0, np.exp(-total / np.maximum(count, 1)), np.nan)
