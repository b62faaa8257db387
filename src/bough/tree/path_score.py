"""The score of a path from the scores of its steps."""

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

PathScore: TypeAlias = Literal["mean", "min", "last", "product"]
"""How the scores of steps make that of their path."""


def path_score(scores: Sequence[float], by: PathScore) -> float:
    """The score of a path; nan without a step.

    Steps of .9, .5 and .8 have the mean .7333, the min .5, the last .8 and the product .36. "product" takes steps for
    independent conditions, so it favours short paths; "last" is the score of an outcome verifier.
    """
    if not scores:
        return math.nan
    if by == "mean":
        return sum(scores) / len(scores)
    if by == "min":
        return min(scores)
    return scores[-1] if by == "last" else math.prod(scores)
