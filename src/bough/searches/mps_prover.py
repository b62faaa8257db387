"""MPS-Prover: several heaps over the same open nodes, ordered by a critic and by rules."""

from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.frontier import Best, UnionOf
from bough.search.prune import DedupeStates
from bough.search.rules import ActionKind, FewestMatches, ShortestState
from bough.search.score import NodeValue
from bough.search.search import Search


def mps_prover(width: int = 4, cases: str = "⊢") -> Search:
    """MPS-Prover (arXiv 2505.10962): expands the best nodes by a critic and by three rules; needs a critic and forks.

    Each round expands up to four nodes, with `width` actions each: the open node of the highest value, that whose last
    action is of the most effective kind, that with the fewest cases, and that with the shortest text. So a biased
    critic does not starve the other orders. States that were reached before are pruned. The kinds are Lean's tactics
    and `cases` counts its goals; elsewhere set `select`, as in

        replace(mps_prover(), select=UnionOf(of=(Best(), Best(by=ActionKind(scores={"^push": 1.0})))))

    Written from the abstract and summaries: the paper's kinds of tactics and their order could not be checked. The
    method of the same name trains policy and critic.
    """
    return Search(
        select=UnionOf(
            of=(
                Best(by=NodeValue()),
                Best(by=ActionKind()),
                Best(by=FewestMatches(pattern=cases)),
                Best(by=ShortestState()),
            )
        ),
        expand=Sample(width=width),
        evaluate=CriticValue(),
        prune=(DedupeStates(),),
        eager=True,
    )
