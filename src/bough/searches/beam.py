"""Step-level beam search: the best nodes of each level are expanded."""

from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.prune import BeamWidth, DedupeStates
from bough.search.search import Search


def beam(width: int = 4, samples: int = 4) -> Search:
    """Step-level beam search (AlphaMath, arXiv 2405.03553): the best nodes of each level are expanded; needs a critic.

    At each of `width` nodes `samples` actions are executed, and the children of highest value stay. A path that ends
    leaves the beam, which stays narrower by one. The answer is the best of the ended paths.
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples),
        evaluate=CriticValue(),
        prune=(DedupeStates(), BeamWidth(width=width, shrink=True)),
        eager=True,
        stop_value=None,
    )
