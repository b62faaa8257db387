"""Passages of a corpus: the agent writes in a few words what a passage is about, for retrieval by embeddings."""

import re
from dataclasses import field, replace
from typing import Annotated, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.state_value import value_of
from bough.piece import AtLeast, piece
from bough.tree import Outcome, Task
from bough.worlds.search.draw import draw_tasks
from bough.worlds.search.index import Fts5, IndexSettings, terms
from bough.worlds.search.knowledge import KnowledgeGraph
from bough.worlds.search.source import QuestionSource, open_collection

CANDIDATES = 20
"""Search results for a question; the first without its evidence is the hard negative."""


@piece
class Passages:
    """A rationale of a passage (GRACE, arXiv 2510.04506): what it is about, in up to `max_words` words, in one action.

    The agent reads a passage that answers a question, without the question. The data of a task have the texts "query",
    the question, "passage", and "negative", the best other search result for the question; `Contrastive` pays for
    embeddings from them. The environment's own reward has no embeddings: it is the recall of the words that passage
    and question share. A recall of 1 is a success. A longer rationale is not valid:

        passage   Rul Vam is old. The mentor of Bak Lum is Tov Res. It rains.       query   Name the mentor of Bak Lum.
        > mentor Bak Lum    1        > mentor Tov Res    1/3        > it rains    0

    Attributes:
        source: The passages and questions: `KnowledgeGraph`, or `CorpusFiles` whose questions have evidence.
        index: The index that finds negatives.
        top: Number of documents in results, by which questions count as solvable, >= 1.
        max_words: Maximum length of a rationale, >= 1.
    """

    source: QuestionSource = field(default_factory=lambda: KnowledgeGraph(hops=(1, 1), facts_per_document=1))
    index: IndexSettings = field(default_factory=Fts5)
    top: Annotated[int, AtLeast(1)] = 5
    max_words: Annotated[int, AtLeast(1)] = 8
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The rules."""
        return f"Write in up to {self.max_words} words what a question about the text would name."

    @property
    def data_hash(self) -> str:
        """SHA-256 of the corpus, or of the settings that generate it."""
        return self.source.data_hash

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split, each with its passage.

        Raises:
            ValueError: when the split has fewer, or a question has no evidence.
        """
        drawn = draw_tasks(self.source, self.index, self.top, split=split, count=count, seed=seed)
        return [replace(task, data=self._data(task)) for task in drawn]

    def start(self, task: Task) -> State:
        """Returns the state with the passage.

        Raises:
            ValueError: when the task has no passage or no query.
        """
        if missing := [name for name in ("passage", "query") if not isinstance(task.data.get(name), str)]:
            raise ValueError(f"Passages: task {task.id} has no {missing[0]!r} in its data; need a text")
        return State(observation=str(task.data["passage"]), key=task.id, value=task)

    def step(self, state: State, action: str) -> Step:
        """Compares the rationale with the words of passage and question, and ends the episode."""
        task = value_of(state, Task, "Passages")
        if state.key != task.id:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False)
        valid = 0 < len(action.split()) <= self.max_words
        wanted = _shared(task)
        recall = len(wanted & {*terms(action)}) / max(1, len(wanted)) if valid else 0.0
        return Step(
            state=State(observation="", key=f"{task.id} over", value=task),
            reward=recall,
            outcome=Outcome.TERMINATED,
            valid=valid,
            success=recall == 1,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Returns the words that passage and question have in common; None after the end, or for too many words."""
        task = value_of(state, Task, "Passages")
        shared = _shared(task)
        words = [*dict.fromkeys(each for each in re.findall(r"\w+", str(task.data["query"])) if each.lower() in shared)]
        return (" ".join(words),) if state.key == task.id and 0 < len(words) <= self.max_words else None

    def _data(self, task: Task) -> dict[str, object]:
        """The data of a task: query, passage and negative."""
        found = open_collection(self.source, self.index)
        evidence = cast("list[dict[str, int]]", task.data["evidence"])
        query, own = str(task.data["question"]), [each["document"] for each in evidence]
        if not own:
            raise ValueError(f"Passages.source: got the question {query!r} without evidence; need its documents")
        others = [number for number in found.index.search(query, CANDIDATES) if number not in own]
        texts = {"query": query, "passage": found.documents[own[0]].text}
        return {**texts, "negative": found.documents[others[0]].text} if others else dict(texts)


def _shared(task: Task) -> set[str]:
    """The words of the question that are in the passage."""
    return {*terms(str(task.data["query"]))} & {*terms(str(task.data["passage"]))}
