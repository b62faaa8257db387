"""Generated files of rows: each reader returns rows, or refuses the file with one message that names it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.damage import lines, refusal
from tests.fuzz import inputs

from bough.env import ProgramTasks
from bough.env.rows import RowTasks
from bough.store import read_tasks, write_tasks
from bough.worlds.code.rows import read_rows
from bough.worlds.search import CorpusFiles
from bough.worlds.search.files import _read_questions


def tasks(file: Path) -> object:
    found = read_tasks(file)
    write_tasks(file.with_name("again.jsonl"), found)
    assert read_tasks(file.with_name("again.jsonl")) == found
    return found


READERS: dict[str, tuple[list[object], Callable[[Path], object]]] = {
    "rows": (
        [{"id": at, "prompt": f"p{at}", "split": "train", "data": {"a": [at]}} for at in range(3)],
        lambda file: RowTasks("tools", str(file)),
    ),
    "programs": (
        [{"id": f"t{at}", "seed": at, "data": {"q": at}} for at in range(3)],
        lambda file: ProgramTasks(file=str(file)).tasks("train", 0, 0),
    ),
    "tasks": ([{"id": at, "data": {"q": [at]}, "start": ["go", {"text": "", "calls": []}]} for at in range(3)], tasks),
    "code": (
        [
            {
                "prompt": "Add.",
                "tests": ["assert f(1) == 2", {"call": "f(1)", "value": 2}],
                "reference": "def f(x): ...",
            },
            {"prompt": "def f():", "entry_point": "f", "test": "def check(f):\n    assert f() == 1", "visible": 1},
        ],
        lambda file: read_rows(str(file), 1),
    ),
    "corpus": (
        [{"title": f"T{at}", "text": "a\nb"} for at in range(3)],
        lambda file: CorpusFiles(corpus=str(file), tasks=str(file)).documents(),
    ),
    "questions": (
        [
            {"question": "q?", "answers": ["a", ["b"]], "evidence": ["A"], "queries": ["x"], "split": "dev"},
            {"question": "r?", "answer": "a"},
        ],
        lambda file: _read_questions(str(file.with_name("corpus.jsonl")), str(file), (str(file), str(file))),
    ),
}


def test_rows_are_read_or_refused(tmp_path: Path) -> None:
    names, read_whole = [*READERS], 0
    (tmp_path / "corpus.jsonl").write_text('{"title": "A", "text": "b"}\n')
    for number, rng in inputs("rows"):
        rows, read = READERS[names[number % len(names)]]
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(lines(rng, rows))
        message = refusal(partial(read, file), ValueError, number)
        assert not message or file.name in message, number
        assert len(message) < 2000, number
        read_whole += not message
        file.unlink()
    assert read_whole
