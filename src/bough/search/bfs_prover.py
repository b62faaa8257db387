"""Best-first search by how likely the policy finds a way."""

from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.prune import DedupeStates
from bough.search.score import Likelihood
from bough.search.search import Search


def bfs_prover(width: int = 4, alpha: float = 1.0) -> Search:
    """BFS-Prover (arXiv 2502.03438): the likeliest way goes on, no critic; needs state keys where ways may meet.

    `width` actions of the policy are written and carried out at the place whose actions' mean token log-probabilities
    add up to most, over depth^alpha; states that were reached before are given up. The released code of the second
    version (2509.06493) has alpha 2, and a place whose actions were not written in time is lost for good: here the
    engine is asked again. Sample at a temperature above 1, as there, for actions that differ.
    """
    return Search(
        select=Best(by=Likelihood(alpha=alpha)), expand=Sample(width=width), prune=(DedupeStates(),), eager=True
    )
