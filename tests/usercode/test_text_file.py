"""Every reader of a user's JSON lines splits them at the ends of lines alone."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count, product
from pathlib import Path

import pytest

from bough.env import ProgramTasks, tools_env
from bough.env.splits import split_of
from bough.store import read_tasks
from bough.store.message_log import read_conversations
from bough.usercode.text_file import read_lines, read_text
from bough.worlds.code.rows import read_rows
from bough.worlds.function_calls import FunctionCalls
from bough.worlds.search import CorpusFiles, SearchQa
from bough.worlds.sql import SpiderFolder, Sql

SEPARATORS = "\u2028\u2029\u0085"
BOM = b"\xef\xbb\xbf"


def look(place: str) -> str:
    """Look at a place."""
    return place


def reward(state: object, row: object) -> bool:
    return state is row


def spider(file: Path) -> int:
    """The questions of a Spider folder, whose file is a list."""
    place = file.parent / "database" / "s" / "s.sqlite"
    place.parent.mkdir(parents=True)
    with closing(sqlite3.connect(place)) as database:
        database.execute("create table t (a)")
    head, rows = file.read_bytes()[:3], [*filter(None, read_text(file).split("\n"))]
    (file.parent / "dev.json").write_bytes((BOM if head == BOM else b"") + f"[{','.join(rows)}]".encode())
    source = SpiderFolder(folder=str(file.parent), test=("dev.json",), dev=("dev.json",))
    return len(Sql(questions=source, single_turn=True).tasks("test", len(rows), 0))


def corpus(file: Path) -> int:
    source = CorpusFiles(corpus=str(file), tasks=str(file))
    assert len(SearchQa(source=source).tasks("train", 3, 0)) == 3
    return len(source.documents())


READERS: dict[str, tuple[Callable[[str], dict[str, object]], Callable[[Path], int]]] = {
    "tools": (
        lambda text: {"prompt": text, "split": "train"},
        lambda file: len(tools_env(tools=[look], tasks=str(file), reward=reward).tasks("train", 3, 0)),
    ),
    "function calls": (
        lambda text: {
            "prompt": text,
            "split": "train",
            "tools": [{"name": "look", "description": text, "parameters": {"type": "object", "properties": {}}}],
            "calls": [{"look": {}}],
        },
        lambda file: len(FunctionCalls(rows=str(file)).tasks("train", 3, 0)),
    ),
    "programs": (
        lambda text: {"id": next(text for text in (f"{text} {n}" for n in count()) if split_of(text) == "train")},
        lambda file: len(ProgramTasks(file=str(file)).tasks("train", 3, 0)),
    ),
    "code": (
        lambda text: {"prompt": text, "tests": ["assert f(1) == 2"]},
        lambda file: len(read_rows(str(file), 1)),
    ),
    "tasks": (lambda text: {"id": text}, lambda file: len(read_tasks(file))),
    "conversations": (
        lambda text: {"messages": [{"role": role, "content": text} for role in ("user", "assistant")]},
        lambda file: len(read_conversations(file)),
    ),
    "corpus and questions": (
        lambda text: {"title": text, "text": text, "question": text, "answers": [text], "split": "train"},
        corpus,
    ),
    "spider": (lambda text: {"db_id": "s", "question": text, "query": "select a from t"}, spider),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("form", ["separators", "byte order mark", "windows"])
def test_json_lines_are_read(name: str, form: str, tmp_path: Path) -> None:
    made, read = READERS[name]
    end = "\r\n" if form == "windows" else "\n"
    text = "".join(json.dumps(made(f"{n} a{SEPARATORS}b"), ensure_ascii=False) + end for n in range(3))
    file = tmp_path / "rows.jsonl"
    file.write_bytes((BOM if form == "byte order mark" else b"") + text.encode())
    assert read(file) == 3


BROKEN = {
    "cut": (b'{"prompt": "a', "no JSON"),
    "list": (b"[1]", "no object"),
    "deep": (b'{"data": ' + b"[" * 101 + b"]" * 101 + b"}", "more than 100 levels"),
    "very deep": (b'{"data": ' + b"[" * 50_000, "more than 100 levels"),
    "NaN": (b'{"reward": NaN}', "NaN is no number"),
    "infinite": (b'{"reward": 1e999}', "1e999' is no finite number"),
    "digits": (b'{"reward": ' + b"9" * 5000 + b"}", "no JSON"),
    "surrogate": (rb'{"prompt": "half \uD83d of it"}', "half of a surrogate pair"),
    "latin": (b'{"prompt": "\xfc"}', "no UTF-8"),
}


LISTS = {("spider", "list"), ("spider", "latin")}
"""Spider's file is a list, read as one text."""


@pytest.mark.parametrize(("name", "kind"), [each for each in product(READERS, BROKEN) if each not in LISTS])
def test_a_broken_line_is_named(name: str, kind: str, tmp_path: Path) -> None:
    made, read = READERS[name]
    broken, reason = BROKEN[kind]
    file = tmp_path / "rows.jsonl"
    file.write_bytes(json.dumps(made("a")).encode() + b"\n\n" + broken + b"\n" + json.dumps(made("b")).encode())
    place = "dev.json" if name == "spider" else "rows.jsonl, line 3"
    with pytest.raises(ValueError, match=f"{place}: .*{reason}.*need "):
        read(file)


def test_a_file_with_a_colon_is_no_address(tmp_path: Path) -> None:
    file = tmp_path / "a:b.jsonl"
    file.write_text('{"prompt": "a", "split": "train", "id": 0}\n')
    (task,) = tools_env(tools=[look], tasks=str(file), reward=reward).tasks("train", 1, 0)
    assert task.id == "0"


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(BOM + f"a{SEPARATORS}b\r\n\nc".encode())
    assert [*read_lines(file)] == [(f"{file}, line 1", f"a{SEPARATORS}b"), (f"{file}, line 3", "c")]
    assert read_text(file) == f"a{SEPARATORS}b\n\nc"


@pytest.mark.parametrize("read", [read_text, lambda file: [*read_lines(file)]], ids=["text", "lines"])
def test_another_encoding_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes("Zürich".encode("latin-1"))
    with pytest.raises(ValueError, match=r"rows\.jsonl.*: got no UTF-8 \(.* 0xfc\); need text in UTF-8"):
        read(file)
