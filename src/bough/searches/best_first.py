"""Best-first search."""

from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.score import NodeValue
from bough.search.search import Search


def best_first(width: int = 4) -> Search:
    """Best-first search in the real environment (arXiv 2407.01476): expands the best node; needs a critic."""
    return Search(select=Best(by=NodeValue()), expand=Sample(width=width), evaluate=CriticValue())
