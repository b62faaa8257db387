"""BFS-Prover: best-first search by the likelihood of a path."""

from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.prune import DedupeStates
from bough.search.score import Likelihood
from bough.search.search import Search


def bfs_prover(width: int = 4, alpha: float = 1.0) -> Search:
    """BFS-Prover (arXiv 2502.03438): expands the most likely path, no critic; needs state keys where paths may meet.

    The selected node has the highest sum of the mean token log-probabilities of its actions, over depth^alpha. `width`
    actions are sampled and executed there; states that were reached before are pruned. Its second version is
    `bfs_prover_v2()`. The released code drops a node whose actions were not sampled in time; here the request is
    retried. Sample at a temperature above 1, as there, for diverse actions.
    """
    return Search(
        select=Best(by=Likelihood(alpha=alpha)), expand=Sample(width=width), prune=(DedupeStates(),), eager=True
    )
