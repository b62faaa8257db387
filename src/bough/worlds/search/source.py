"""A source of documents and questions, and the collection that a process builds from it once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, cast, runtime_checkable

from bough.env.env import Split
from bough.worlds.search.document import Document
from bough.worlds.search.index import Index, IndexSettings
from bough.worlds.search.question import Question


@runtime_checkable
class QuestionSource(Protocol):
    """Documents and questions about them: a frozen dataclass whose fields are its settings."""

    @property
    def data_hash(self) -> str:
        """SHA-256 of documents, or of the settings that generate them."""
        ...

    def documents(self) -> Sequence[Document]:
        """Returns the corpus, in one order for all processes."""
        ...

    def questions(self, split: Split, count: int, seed: int, index: Index, top: int) -> list[Question]:
        """Returns `count` different questions of a split. Splits share no question.

        Args:
            split: The split.
            count: Number of questions.
            seed: Seed of the samples.
            index: The index over `documents`.
            top: Number of documents that a search returns.

        Raises:
            ValueError: when the split has fewer questions.
        """
        ...


class ChangingSource(Protocol):
    """A source whose documents may change while a process runs."""

    @property
    def version(self) -> str:
        """A text that differs after a change of the documents."""
        ...


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A corpus with its index, shared by all states of a process and never changed."""

    documents: Sequence[Document]
    index: Index

    @cached_property
    def longest(self) -> int:
        """Characters of the longest document, with its title."""
        return max((len(each.title) + 1 + len(each.text) for each in self.documents), default=0)


def open_collection(source: QuestionSource, index: IndexSettings) -> Collection:
    """The collection of a source, built at the first call and after a change of its documents."""
    # Every search comes here, and `isinstance` of a protocol takes longer than the search.
    version = cast("ChangingSource", source).version if hasattr(source, "version") else ""
    return _built(source, index, version)


@lru_cache(maxsize=8)
def _built(source: QuestionSource, index: IndexSettings, version: str) -> Collection:
    del version  # part of the cache's key
    documents = source.documents()
    return Collection(documents=documents, index=index.build(documents))
