"""Question answering with several knowledge bases: each search is routed to one of them."""

import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from bough.piece import piece
from bough.tree import Task, Tool, ToolCall
from bough.worlds.search.env import SearchQa
from bough.worlds.search.question import Evidence
from bough.worlds.search.source import QuestionSource

DEEPER = 8
"""Documents of the whole corpus that are ranked for each one of a base."""

BASES: Mapping[str, tuple[str, ...]] = {
    "places": ("birthplace", "home", "seat", "twin"),
    "firms": ("bank", "employer", "newspaper", "supplier"),
    "people": (),
}
"""The bases of `KnowledgeGraph`: the relations of places and firms; everything else is in the last."""


@piece
class RoutedSearch(SearchQa):
    """R1-Router (arXiv 2505.22095): multi-hop questions over several knowledge bases; each search names one.

    As `SearchQa`, with the tool `search(base, query)`. A search finds documents of its base alone, so a query that is
    sent to the wrong base does not find its fact. The agent decides at every turn whether to search on, and where.

        search(base="places", query="birthplace of Guf Tek")    Guf Tek has the birthplace Guf Guz.
        search(base="people", query="birthplace of Guf Tek")    documents of other relations

    A document is in the first base that has one of the document's words, else in the last. `evidence_reward` is a
    reward of single turns without a judge: a search that finds a new fact is paid. The paper's bases hold texts, images
    and tables, each with a retriever of its own.

    Attributes:
        bases: The words of each base, by its name; at least two.

    Raises:
        ValueError: when there are fewer than two bases, or a field is out of its range.
    """

    bases: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(BASES))

    def __post_init__(self) -> None:
        if len(self.bases) < 2:
            raise ValueError(f"RoutedSearch.bases: got {[*self.bases]}; need at least two")

    @property
    def instructions(self) -> str:
        """The rules and the bases."""
        return (
            f"Search one of the bases {', '.join(self.bases)}, and read documents. Then answer the question with the "
            "answer alone."
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; a search names its base."""
        search = Tool(
            name="search",
            description="Lists documents of a base that match words.",
            schema={
                "type": "object",
                "properties": {"base": {"type": "string", "enum": [*self.bases]}, "query": {"type": "string"}},
                "required": ["base", "query"],
                "additionalProperties": False,
            },
        )
        return (search, self.read_tool)

    def search_call(self, fact: Evidence) -> ToolCall:
        """The oracle's search for a fact, in the base of its document."""
        base = [*self.bases][self._places[fact.document]]
        return ToolCall(name="search", arguments={"base": base, "query": fact.query})

    def search(self, task: Task, call: ToolCall) -> list[int]:
        """The numbers of the documents of the base that a search finds."""
        base, places = [*self.bases].index(str(call.arguments["base"])), self._places
        ranked = self.ranked(task, str(call.arguments["query"]), DEEPER * self.top)
        return [number for number in ranked if places[number] == base][: self.top]

    @property
    def _places(self) -> tuple[int, ...]:
        """The base of each document, by its place."""
        return _placed(self.source, tuple(map(tuple, self.bases.values())))


@lru_cache(maxsize=8)
def _placed(source: QuestionSource, bases: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    by_word = {word.lower(): place for place, words in reversed([*enumerate(bases)]) for word in words}
    last = len(bases) - 1
    return tuple(
        min((by_word.get(word, last) for word in re.findall(r"\w+", each.text.lower())), default=last)
        for each in source.documents()
    )
