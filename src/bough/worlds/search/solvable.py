"""The facts that an index retrieves: a question is solvable when they contain all that its answer needs."""

from collections.abc import Callable, Collection

from bough.worlds.search.corpus import GraphCorpus
from bough.worlds.search.graph import Graph


class RetrievableFacts:
    """The facts whose document is among the first `top` results of the oracle's query; each pair is searched once.

    Args:
        graph: The graph.
        corpus: Its documents.
        search: Returns the numbers of the first `top` documents for a query.
    """

    def __init__(self, graph: Graph, corpus: GraphCorpus, search: Callable[[str], Collection[int]]) -> None:
        self.graph, self.corpus = graph, corpus
        self._search = search
        self._found: dict[tuple[int, str], bool] = {}

    def forward(self, fact: int, mention: str) -> bool:
        """Whether a fact is found by its relation and a spelling of its subject."""
        return self._holds(fact, forward_query(mention, self.graph.facts[fact].relation))

    def backward(self, fact: int) -> bool:
        """Whether a fact is found by its relation and its value."""
        of = self.graph.facts[fact]
        return self._holds(fact, backward_query(self.graph.entities[of.value].spellings, of.relation))

    def _holds(self, fact: int, query: str) -> bool:
        pair = (fact, query)
        if pair not in self._found:
            self._found[pair] = self.corpus.locations[fact][0] in self._search(query)
        return self._found[pair]


def forward_query(mention: str, relation: str) -> str:
    """The oracle's query for the value of a relation."""
    return f"{relation} of {mention}"


def backward_query(spellings: Collection[str], relation: str) -> str:
    """The oracle's query for the entities with a value of a relation."""
    return f"{relation} {' '.join(spellings)}"
