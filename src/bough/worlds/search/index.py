"""Full-text indices over a corpus, ranked by BM25."""

import re
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Protocol, runtime_checkable

from bough.piece import AtLeast, piece
from bough.version import install
from bough.worlds.search.document import Document

TERM = re.compile(r"\w+")
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
"""Runs of letters of scripts without blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese."""
STOP_WORDS = frozenset(
    {"a", "an", "and", "as", "at", "by", "for", "has", "in", "is", "of", "on", "or", "the", "to", "was"}
)
"""Words of a query that are not searched, unless it has no others."""
MOST_TERMS = 64
"""Different words of a query that are searched."""
LONGEST_TERM = 64
"""Characters of a word that are searched."""
RECENT = 4096
"""Queries of an FTS5 index whose results are kept."""


class Index(Protocol):
    """An index in memory, read-only after it is built."""

    def search(self, query: str, count: int) -> list[int]:
        """The numbers of the best documents, best first; equal queries give equal results."""
        ...


@runtime_checkable
class IndexSettings(Protocol):
    """Builds an index: `Fts5` or `Bm25s`."""

    def build(self, documents: Sequence[Document]) -> Index:
        """Returns an index over documents."""
        ...


def terms(query: str) -> list[str]:
    """The different words of a query without stop words, in order, in lower case; any text gives a list."""
    plain = _clean(query, alone=False).lower()
    found = dict.fromkeys(match[0][:LONGEST_TERM] for match in TERM.finditer(plain))
    return [*([each for each in found if each not in STOP_WORDS] or found)][:MOST_TERMS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fts5:
    """SQLite's full-text index, which is part of Python. A document matches when it has any word of the query.

    In scripts without blanks between words, such as Chinese and Thai, pairs of letters that follow each other count as
    words, as in Lucene's CJKBigramFilter.

    Attributes:
        title_weight: Weight of a word in the title, relative to one in the text.
        stem: Whether words match by their English stem.
    """

    title_weight: float = 2.0
    stem: bool = False

    def build(self, documents: Sequence[Document]) -> "Fts5Index":
        """See `IndexSettings`."""
        return Fts5Index(self, documents)


class Fts5Index:
    """An FTS5 table in memory. Threads take turns; the results of recent queries are kept."""

    def __init__(self, settings: Fts5, documents: Sequence[Document]) -> None:
        self._lock = threading.Lock()
        self._weight = settings.title_weight
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        tokenizer = "porter unicode61" if settings.stem else "unicode61"
        self._database.execute(f"create virtual table docs using fts5(title, text, tokenize='{tokenizer}')")
        rows = [(number, _clean(each.title), _clean(each.text)) for number, each in enumerate(documents)]
        self._database.execute("begin")
        self._database.executemany("insert into docs(rowid, title, text) values (?, ?, ?)", rows)
        self._database.execute("commit")
        self._database.execute("pragma query_only = 1")
        self._cached = lru_cache(maxsize=RECENT)(self._run)

    def search(self, query: str, count: int) -> list[int]:
        """See `Index`."""
        found = terms(query)
        return [*self._cached(" OR ".join(f'"{each}"' for each in found), count)] if found else []

    def _run(self, match: str, count: int) -> tuple[int, ...]:
        """The documents of a query in FTS5's language."""
        with self._lock:
            rows = self._database.execute(
                "select rowid from docs where docs match ? order by bm25(docs, ?, 1.0), rowid limit ?",
                (match, self._weight, count),
            ).fetchall()
        return tuple(int(row[0]) for row in rows)


@piece
class Bm25s:
    """The index of the package bm25s (arXiv 2407.03618), faster on large corpora; `pip install 'bough-rl[search]'`.

    Attributes:
        title_weight: How often a title counts as part of the text, >= 1.
    """

    title_weight: Annotated[int, AtLeast(1)] = 2

    def build(self, documents: Sequence[Document]) -> "Bm25sIndex":
        """See `IndexSettings`.

        Raises:
            ImportError: when bm25s is not installed.
        """
        return Bm25sIndex(self, documents)


class Bm25sIndex:
    """Sparse scores of all documents by word."""

    def __init__(self, settings: Bm25s, documents: Sequence[Document]) -> None:
        try:
            import bm25s  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
        except ImportError as error:
            raise ImportError(
                f"Bm25s: got no package bm25s; install it ({install('search')}), or take index=Fts5()"
            ) from error
        texts = [[*settings.title_weight * _words(each.title), *_words(each.text)] for each in documents]
        names = dict.fromkeys(word for text in texts for word in text)
        self._known = frozenset(names)
        self._documents = len(documents)
        self._index: Any = bm25s.BM25()  # pyright: ignore[reportUnknownMemberType]
        self._index.index(texts, show_progress=False)

    def search(self, query: str, count: int) -> list[int]:
        """See `Index`."""
        found = [each for each in terms(query) if each in self._known]
        if not found:
            return []
        scores: Any = self._index.get_scores(found)
        # A stable sort: equal scores keep the order of the documents.
        order: list[int] = (-scores).argsort(kind="stable")[: min(count, self._documents)].tolist()
        return [number for number in order if scores[number] > 0]


def _words(text: str) -> list[str]:
    return [match[0][:LONGEST_TERM] for match in TERM.finditer(_clean(text).lower())]


def _clean(text: str, *, alone: bool = True) -> str:
    """The text as an index holds it: without lone surrogates, and with pairs of letters for words without blanks.

    Args:
        text: The text.
        alone: Whether runs of letters without blanks have their single letters too, beside the pairs.
    """
    plain = text.encode(errors="ignore").decode()
    return UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0], alone))} ", plain)


def _pairs(run: str, alone: bool) -> list[str]:
    """The pairs of letters of a run that follow each other, each spelled as one word in ASCII."""
    letters = [f"u{ord(letter):x}" for letter in run]
    return [*(map("".join, pairwise(letters))), *(letters if alone or len(letters) == 1 else ())]
