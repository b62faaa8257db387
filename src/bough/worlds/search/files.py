"""A corpus and questions of the user's own, from files."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, cast

from bough.env.env import Split
from bough.env.rows import SPLITS
from bough.env.splits import split_of
from bough.piece import piece
from bough.usercode.json_file import read_objects
from bough.usercode.text_file import read_text
from bough.worlds.search.document import Document
from bough.worlds.search.index import Index
from bough.worlds.search.question import Evidence, Question
from bough.worlds.search.score import normalise

SUFFIXES = (".txt", ".md", ".markdown")

DOCUMENT = 'a JSON object with a text under "text"'
QUESTION = 'a JSON object with a text under "question", and "answers"'

REFRESH_S = 1.0
"""Seconds for which searches reuse the last check whether files have changed."""

TEXT_KEYS = ("text", "contents", "content")
"""Keys of the text in a row of a corpus; the first key present is used."""


@piece
class CorpusFiles:
    r"""A corpus of files, and questions in JSON lines.

    The corpus is a folder of `.txt` and `.md` files, whose titles are their paths without the suffix. It can also be a
    file of JSON lines, `{"title": ..., "text": ...}`. A question is a line

        {"question": "Where is the port?", "answers": ["Bak Lum"], "evidence": ["notes/a"]}

    with these keys:

        answers   spellings of the one answer; or a list of lists: a set of answers, each with its spellings
        answer    in place of "answers": the one spelling
        evidence  optional: titles of the documents that the answer needs, in order; the oracle needs it
        queries   optional: a search for each document of the evidence; the default is the title
        split     optional: the split; by default the content decides

    Questions that differ only in case and punctuation have one content. Files that change are read again: at each draw
    of tasks, and within `REFRESH_S` seconds in searches.

    Attributes:
        corpus: A folder, or a file of JSON lines.
        tasks: A file of JSON lines.

    Raises:
        FileNotFoundError: when one of them does not exist.
    """

    corpus: str
    tasks: str

    def __post_init__(self) -> None:
        for name in ("corpus", "tasks"):
            if not Path(getattr(self, name)).expanduser().exists():
                raise FileNotFoundError(f"CorpusFiles.{name}: got {getattr(self, name)!r}; need a file that exists")

    @property
    def version(self) -> str:
        """See `ChangingSource`."""
        return _stamp(self.corpus, REFRESH_S)

    @property
    def data_hash(self) -> str:
        """See `QuestionSource`."""
        parts = [f"{each.title}\n{each.text}" for each in self.documents()]
        return sha256("\n".join([*parts, read_text(Path(self.tasks).expanduser())]).encode()).hexdigest()

    def documents(self) -> Sequence[Document]:
        """See `QuestionSource`.

        Raises:
            ValueError: when there is no document, a line is none, or a file is empty, is binary or has the title of
                another.
        """
        return _read_corpus(self.corpus, _stamp(self.corpus))

    def questions(self, split: Split, count: int, seed: int, index: Index, top: int) -> list[Question]:
        """See `QuestionSource`."""
        del index, top
        by_split = _read_questions(self.corpus, self.tasks, (_stamp(self.corpus), _stamp(self.tasks)))
        found = by_split[split]
        if not 0 <= count <= len(found):
            sizes = ", ".join(f"{len(each)} of {name!r}" for name, each in by_split.items())
            raise ValueError(
                f"CorpusFiles: got count={count} for split {split!r}; {self.tasks} has {sizes}. Set tasks.count="
                f"{len(found)} or less (evaluation.tasks.count for held-out questions), or add questions"
            )
        return Random(f"questions {seed} {split}").sample(found, len(found))[:count]


_STAMPS: dict[str, tuple[float, str]] = {}
"""The last stamp of each place, with the time when it was taken, in seconds."""


def _stamp(place: str, age_s: float = 0.0) -> str:
    """A text that differs after a change of a file, or of a document in a folder: from sizes and times of change.

    Args:
        place: The file or folder.
        age_s: Maximum age of a stamp that is used again, in seconds.
    """
    if place in _STAMPS and time.monotonic() - _STAMPS[place][0] < age_s:
        return _STAMPS[place][1]
    path = Path(place).expanduser()
    now = sha256()
    for file in _files(path) if path.is_dir() else [path]:
        found = file.stat()
        now.update(repr((str(file), found.st_mtime_ns, found.st_size)).encode(errors="surrogateescape"))
    _STAMPS[place] = (time.monotonic(), now.hexdigest())
    return now.hexdigest()


@lru_cache(maxsize=4)
def _read_corpus(place: str, stamp: str) -> tuple[Document, ...]:
    del stamp  # part of the cache's key
    path = Path(place).expanduser()
    found = tuple(_folder(path) if path.is_dir() else _rows(path))
    if not found:
        raise ValueError(f"{place}: got no documents; need files of {', '.join(SUFFIXES)}, or JSON lines")
    return found


def _folder(folder: Path) -> Iterator[Document]:
    """The documents of a folder, in the order of their paths."""
    found: dict[str, Path] = {}
    for file in _files(folder):
        title, text = file.relative_to(folder).with_suffix("").as_posix(), read_text(file).strip()
        if not text or "\0" in text:
            raise ValueError(f"{file}: got {'no text' if not text else 'bytes of zero'}; need text: remove the file")
        if found.setdefault(title, file) != file:
            raise ValueError(f"{file}: got the title {title!r} of {found[title]} too; need different names")
        yield Document(title=title, text=text)


def _files(folder: Path) -> Iterator[Path]:
    """The files of documents in a folder, in the order of their paths."""
    return (file for file in sorted(folder.rglob("*")) if file.suffix.lower() in SUFFIXES and file.is_file())


def _rows(file: Path) -> Iterator[Document]:
    for where, row in read_objects(file, DOCUMENT):
        text = next((row[key] for key in TEXT_KEYS if isinstance(row.get(key), str)), None)
        if text is None:
            raise ValueError(f'{where}: got the keys {sorted(row)!s:.200}; need a text under "text"')
        title = row.get("title", "")
        first, _, rest = text.partition("\n")
        # Dumps for retrieval often have the title as first line of the text.
        yield Document(title=str(title), text=text) if title else Document(title=first.strip('" '), text=rest or first)


@lru_cache(maxsize=4)
def _read_questions(corpus: str, tasks: str, stamps: tuple[str, str]) -> Mapping[Split, list[Question]]:
    numbers: dict[str, list[int]] = {}
    for number, document in enumerate(_read_corpus(corpus, stamps[0])):
        numbers.setdefault(document.title, []).append(number)
    found: dict[Split, list[Question]] = {split: [] for split in SPLITS}
    splits: dict[str, Split] = {}
    for where, row in read_objects(Path(tasks).expanduser(), QUESTION):
        question = _question(where, row, numbers)
        split = cast("Split", row.get("split") or split_of(question.content))
        if split not in SPLITS:
            raise ValueError(f"{where}: got the split {split!r:.80}; need one of {', '.join(SPLITS)}")
        if question.content not in splits:
            found[split].append(question)
        if splits.setdefault(question.content, split) != split:
            raise ValueError(
                f"{where}: got the question {question.text!r:.60} in the splits {splits[question.content]} and "
                f"{split}; need one split for equal questions"
            )
    return found


def _question(where: str, row: Mapping[str, Any], numbers: Mapping[str, Sequence[int]]) -> Question:
    text = row.get("question")
    answers = _answers(row)
    if not isinstance(text, str) or not text.strip() or not answers:
        raise ValueError(f"{where}: got {str(dict(row))[:80]}; need {QUESTION}")
    if wrong := [name for name in ("evidence", "queries") if not isinstance(row.get(name), list | None)]:
        raise ValueError(f"{where}: got {str(row[wrong[0]])[:80]} as {wrong[0]}; need a list of texts")
    titles = [str(title) for title in row.get("evidence") or ()]
    queries = [str(query) for query in row.get("queries") or titles]
    if unknown := [title for title in titles if title not in numbers]:
        raise ValueError(f"{where}: got the evidence {unknown[0]!r:.80}; need titles of documents of the corpus")
    if several := [title for title in titles if len(numbers[title]) > 1]:
        raise ValueError(
            f"{where}: got the evidence {several[0]!r:.80}, the title of {len(numbers[several[0]])} documents; need "
            "titles of one, or no evidence"
        )
    if len(queries) != len(titles):
        raise ValueError(f"{where}: got {len(queries)} queries for {len(titles)} documents of evidence; need as many")
    evidence = tuple(
        Evidence(document=numbers[title][0], query=query, entity=title)
        for title, query in zip(titles, queries, strict=True)
    )
    return Question(text=text.strip(), answers=answers, evidence=evidence, content=normalise(text) or text.strip())


def _answers(row: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    given = row.get("answers", row.get("answer"))
    if isinstance(given, str | int | float):
        return ((str(given),),)
    listed = cast("list[object]", given) if isinstance(given, list) else []
    if all(isinstance(each, str | int | float) for each in listed):
        return (tuple(map(str, listed)),) if listed else ()
    return tuple(tuple(map(str, cast("list[object]", each))) for each in listed if isinstance(each, list))
