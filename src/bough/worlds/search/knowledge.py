"""A generated knowledge graph as a source of documents and questions."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from hashlib import sha256
from random import Random
from typing import Annotated, Literal, TypeAlias

from bough.env.env import Split
from bough.env.splits import PATIENCE, split_of
from bough.piece import AtLeast, Between, NotEmpty, piece
from bough.worlds.search.among import list_is_solvable, list_question, propose_list
from bough.worlds.search.chains import chain_is_solvable, chain_question, propose_chain
from bough.worlds.search.corpus import GraphCorpus, make_corpus
from bough.worlds.search.document import Document
from bough.worlds.search.graph import Graph, make_graph
from bough.worlds.search.index import Index
from bough.worlds.search.question import Question
from bough.worlds.search.sets import SetShape, propose_set, set_is_solvable, set_question
from bough.worlds.search.solvable import RetrievableFacts

Shape: TypeAlias = Literal["chain", "among"] | SetShape


@piece
class KnowledgeGraph:
    """A generated graph of people, cities and companies, and a corpus that states its facts (SearchGym's design).

    Every question is solvable: the documents of all facts that it needs are among the first results of the oracle's
    queries. No fact is contradicted. By default a fact connects entities of one split, so questions of two splits have
    no entity in common. Shapes of questions:

        chain     Name the boss of the mentor of Bak Lum.                      one answer
        set       Name all whose home is Zad Gor.                              all of a set (WebLeaper's basic tree)
        both      Name all whose home is Zad Gor and whose bank is Pim Tos.    an intersection
        either    Name all whose home is Zad Gor or whose bank is Pim Tos.     a union
        reverse   Name all whose home is the birthplace of Bak Lum.            the value is found first
        among     Which of Bak Lum, Tov Res, ... has the home Zad Gor?         each is looked up until it is found

    Attributes:
        entities: Number of entities, >= 10.
        relations: Maximum number of facts of an entity, >= 1.
        people: Whether all entities are people, who have up to 24 relations.
        hops: Minimum and maximum number of facts of a chain, >= 1.
        forward: Whether a chain's question has its relations in the order of the search: "Who is reached from Bak Lum
            by mentor boss?"
        shapes: The shapes, drawn uniformly.
        set_size: Minimum and maximum size of a set, >= 1; for "among", of the list, one of which is the answer.
        distractors: Number of documents for each fact that share a word of a name and the relation, >= 0.
        alias_rate: Probability that an entity has a second name, which documents may use, in [0, 1].
        facts_per_document: Maximum number of facts in a document, >= 1.
        document_words: Minimum length of a document in words; unrelated sentences fill it. 0 adds none.
        sentences: Number of different forms of a sentence, 1 or 2.
        words: Number of different first words, and of second words, of names; None for as many as needed.
        split_by: What no two splits share: "entities" or "questions". With "questions" they share entities and facts,
            which an agent without a search engine needs: it answers from its weights.
        seed: Seed of graph and corpus.

    Raises:
        ValueError: when a field is out of its range.
    """

    entities: Annotated[int, AtLeast(10)] = 1000
    relations: Annotated[int, AtLeast(1)] = 4
    people: bool = False
    hops: tuple[int, int] = (2, 2)
    forward: bool = False
    shapes: Annotated[tuple[Shape, ...], NotEmpty("at least one shape")] = ("chain",)
    set_size: tuple[int, int] = (2, 4)
    distractors: Annotated[int, AtLeast(0)] = 2
    alias_rate: Annotated[float, Between(0, 1)] = 0.2
    facts_per_document: Annotated[int, AtLeast(1)] = 4
    document_words: Annotated[int, AtLeast(0)] = 60
    sentences: Annotated[int, Between(1, 2)] = 2
    words: int | None = None
    split_by: Literal["entities", "questions"] = "entities"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("hops", 1), ("set_size", 1)):
            low, high = getattr(self, name)
            if not least <= low <= high:
                raise ValueError(f"KnowledgeGraph.{name}: got {(low, high)}; need {least} <= minimum <= maximum")
        if self.name_words**2 < 2 * self.entities:
            raise ValueError(
                f"KnowledgeGraph.words: got {self.words} for {self.entities} entities; need at least "
                f"{self._fewest}, whose square is twice the entities"
            )

    @property
    def _fewest(self) -> int:
        return int((2 * self.entities) ** 0.5) + 1

    @property
    def name_words(self) -> int:
        """Number of different first, and of second words of names."""
        # Enough names for entities, aliases and distractors that share a word with a subject.
        many = self.entities * (2 + self.distractors)
        return max(16, int(many**0.5) + 1, 3 * self.distractors) if self.words is None else self.words

    @property
    def data_hash(self) -> str:
        """See `QuestionSource`."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def graph(self) -> Graph:
        """The graph."""
        return build(self)[0]

    @property
    def corpus(self) -> GraphCorpus:
        """The corpus."""
        return build(self)[1]

    def documents(self) -> Sequence[Document]:
        """See `QuestionSource`."""
        return self.corpus.documents

    def questions(self, split: Split, count: int, seed: int, index: Index, top: int) -> list[Question]:
        """See `QuestionSource`."""
        if count < 0:
            raise ValueError(f"KnowledgeGraph.questions: got count={count}; need 0 or more")
        found = retrievable(self, index, top)
        starts = [each.number for each in self.graph.entities if each.split in (split, None)]
        rng = Random(f"questions {seed} {split}")
        drawn: dict[str, Question] = {}
        misses = 0
        while len(drawn) < count:
            question = self._propose(found, starts, rng) if starts else None
            if question is not None and question.content not in drawn and self._belongs(question, split):
                drawn[question.content] = question
                misses = 0
                continue
            misses += 1
            if misses >= PATIENCE:
                raise ValueError(
                    f"KnowledgeGraph.questions: got count={count} for split {split!r}, but after {len(drawn)} "
                    f"different questions {PATIENCE} samples gave no new one; need a smaller count, or more entities"
                )
        return [*drawn.values()]

    def _belongs(self, question: Question, split: Split) -> bool:
        return self.split_by == "entities" or split_of(question.content) == split

    def _propose(self, found: RetrievableFacts, starts: Sequence[int], rng: Random) -> Question | None:
        """A sampled question; None where it does not exist or is not solvable."""
        shape = rng.choice(self.shapes)
        if shape == "chain":
            walk = propose_chain(found.graph, starts, rng.randint(*self.hops), rng)
            if not walk or not chain_is_solvable(found, walk):
                return None
            return chain_question(found, walk, forward=self.forward)
        if shape == "among":
            listed = propose_list(found.graph, starts, self.set_size, rng)
            return list_question(found, listed) if listed and list_is_solvable(found, listed) else None
        instance = propose_set(found.graph, starts, shape, self.set_size, rng)
        return set_question(found, instance) if instance and set_is_solvable(found, instance) else None


@lru_cache(maxsize=8)
def build(settings: KnowledgeGraph) -> tuple[Graph, GraphCorpus]:
    """Graph and corpus of some settings, made once a process."""
    of = settings
    graph = make_graph(
        entities=of.entities,
        relations=of.relations,
        alias_rate=of.alias_rate,
        words=of.name_words,
        split_entities=of.split_by == "entities",
        people=of.people,
        seed=of.seed,
    )
    corpus = make_corpus(
        graph,
        distractors=of.distractors,
        facts_per_document=of.facts_per_document,
        document_words=of.document_words,
        sentences=of.sentences,
        seed=of.seed,
    )
    return graph, corpus


@lru_cache(maxsize=8)
def retrievable(settings: KnowledgeGraph, index: Index, top: int) -> RetrievableFacts:
    """The retrievable facts of a graph, each searched once a process."""
    graph, corpus = build(settings)
    return RetrievableFacts(graph, corpus, partial(_top, index, top))


def _top(index: Index, top: int, query: str) -> Collection[int]:
    return frozenset(index.search(query, top))
