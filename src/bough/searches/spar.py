"""SPaR: answers refined by critique."""

import math

from bough.ask.prompts import LabelParser
from bough.needs import POLICY
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.judge import Judge
from bough.search.prune import BeamWidth
from bough.search.reflect import Critique
from bough.search.search import Search

OBEYS = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Does the last answer do all that it was told to? Answer yes or no."
)


def spar(
    width: int = 3, keep: int = 2, n: int = 5, depth: int = 3, first: int | None = None, role: str = POLICY
) -> Search:
    """SPaR (arXiv 2412.11605): refines answers by critique, level by level, until judges accept one; needs forks.

    For environments in which each action is a whole answer that later actions can replace. The answer to refine is the
    first (`Task.start`); without it the first level samples first answers. The value is the share of `n` judgements
    that are positive, and the search ends with a value above one half.

    Args:
        width: Number of refinements of an answer.
        keep: Number of answers of a level that are refined.
        n: Number of judgements of an answer.
        depth: Number of levels, that of the first answers included.
        first: Number of first answers; None for `width`.
        role: The role whose model judges and criticises.
    """
    yes = LabelParser(scores={"yes": 1.0, "no": 0.0})
    return Search(
        select=Level(),
        expand=Sample(width=width, hint=Critique(role=role), root_width=first),
        evaluate=Judge(n=n, prompt=OBEYS, read=yes, role=role, keep=True),
        prune=(BeamWidth(width=keep),),
        eager=True,
        success_value=None,
        stop_value=math.nextafter(0.5, 1),
        answer_at_any_node=True,
        rounds=depth,
    )
