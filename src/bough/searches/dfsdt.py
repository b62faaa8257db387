"""DFSDT: depth-first search-based decision tree."""

from bough.search.expand import Sample
from bough.search.frontier import DepthFirst
from bough.search.prune import BackJump
from bough.search.search import Search


def dfsdt(width: int = 2, back: int = 2) -> Search:
    """DFSDT (ToolLLM, arXiv 2307.16789): depth first, one action at a time, two turns back after an end; needs forks.

    A path is followed to its end: an answer, a give-up action or a limit on turns. Then the search goes back `back`
    turns and samples another action, up to `width` actions at one node. With width 2 and ends at depth 3 ten actions
    are sampled: a1, a1 a2, a1 a2 a3, a1 a4, a1 a4 a5, a6, a6 a7, a6 a7 a8, a6 a9, a6 a9 a10.

    In the paper the prompt has the earlier siblings: `expand=Sample(width=1, hint=Siblings())`. Its other variant
    samples all actions of a node at once and takes the best rated first: `expand=Sample(width=n)`,
    `expansions_per_node=1`, a `rate`.
    """
    return Search(
        select=DepthFirst(),
        expand=Sample(width=1),
        prune=(BackJump(turns=back),),
        expansions_per_node=width,
        merge=False,
        rounds=200,
    )
