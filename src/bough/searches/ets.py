"""ETS: REBASE on diverse nodes that share much of their paths."""

from dataclasses import replace

from bough.search.embedded import Embedded
from bough.search.ets import Sparse
from bough.search.search import Search
from bough.searches.rebase import rebase


def ets(width: int = 16, temperature: float = 0.2, cost: float = 1.0, spread: float = 1.4) -> Search:
    """ETS (arXiv 2502.13575): REBASE on diverse nodes that share much of their paths; needs a critic.

    `Sparse` defines the nodes kept at each level; see `rebase` for the rest. Actions are embedded by the policy's own
    hidden states, where the paper has a sentence model, and the cost is in tokens of the KV cache.
    """
    sparse = Sparse(width=width, temperature=temperature, cost=cost, spread=spread)
    return replace(rebase(width=width, temperature=temperature), evaluate=Embedded(), prune=(sparse,))
