"""Tasks from files of rows: JSON lines, CSV, Parquet."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.missing import need

from bough.env import row_files
from bough.env.rows import RowTasks, place_of, prompt_messages

ROWS = [{"question": f"{n} + 1?", "answer": str(n + 1)} for n in range(40)]


def found(source: Any) -> dict[str, Any]:
    tasks = RowTasks("sums", place_of(source, "question"), "question")
    return {"tasks": tasks.by_split, "digest": tasks.digest}


def test_a_csv_file_has_the_rows_of_its_lines(tmp_path: Path) -> None:
    lines = tmp_path / "sums.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    table = tmp_path / "sums.CSV"
    table.write_text(
        "\ufeffquestion,answer\n" + "".join(f'"{row["question"]}",{row["answer"]}\n' for row in ROWS) + "\n"
    )
    assert found(table) == found(lines) == found(ROWS) == found(str(table))
    table.write_text('question,answer\n"two\nlines, ""quoted""",\n')
    ((where, line),) = row_files.read_row_file(table)
    assert json.loads(line) == {"question": 'two\nlines, "quoted"', "answer": ""}
    assert where == f"{table}, line 3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"question,answer\na\n", r"line 2: got 1 fields; need 2"),
        (b"question,question\na,b\n", "need different names in the first line"),
        (b"", "got the columns \\[\\]; need"),
        (b'question\n"a" b\n', "got no CSV after it"),
        (b"question\n\xff\n", "got no UTF-8"),
        (b"prompt\na\n", 'line 2: got .*need a JSON object with a text or messages under "question"'),
    ],
)
def test_a_wrong_csv_file_is_named(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "sums.csv").write_bytes(text)
    with pytest.raises(ValueError, match=message) as raised:
        found(tmp_path / "sums.csv")
    assert "sums.csv" in str(raised.value)


def test_a_parquet_file_has_the_rows_of_its_table(tmp_path: Path) -> None:
    need("pyarrow")
    import pyarrow  # pyright: ignore[reportMissingImports]
    import pyarrow.parquet  # pyright: ignore[reportMissingImports]

    file = tmp_path / "sums.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), file)
    assert found(file) == found(ROWS)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"question": "a", "raw": b"\xff"}]), file)
    with pytest.raises(ValueError, match=r"sums\.parquet, row 1: got .*need a mapping that JSON can write"):
        found(file)
    file.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"sums\.parquet: got no Parquet"):
        found(file)


def test_a_parquet_file_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))
    with pytest.raises(ImportError, match=r"without the package pyarrow; need it: pip install 'bough-rl\[parquet\]'"):
        found(tmp_path / "sums.parquet")


def test_a_list_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "sums.json"
    file.write_text(json.dumps(ROWS, indent=1))
    assert found(file) == found(ROWS)
    file.write_text("[1]")
    with pytest.raises(ValueError, match=r"sums\.json, row 1: got 1; need an object"):
        found(file)
    file.write_text("[{]")
    with pytest.raises(ValueError, match=r"sums\.json: got no JSON.*; need a list of objects, or JSON lines"):
        found(file)


def test_the_file_of_another_machine_is_no_data_set() -> None:
    assert place_of("gone/sums.jsonl") == str(Path("gone/sums.jsonl").resolve())


class Table:
    """As a DataFrame: its elements are the names of its columns."""

    columns = ("prompt",)

    def __iter__(self) -> Any:
        return iter(self.columns)


@pytest.mark.parametrize("source", [Table(), {"prompt": ["a"]}, 3])
def test_columns_are_no_rows(source: Any) -> None:
    with pytest.raises(ValueError, match=rf"got an object of {type(source).__name__}; need rows, such as .*to_dict"):
        place_of(source)


def test_a_prompt_is_a_text_or_messages() -> None:
    shots = [("user", "1 + 1?"), ("assistant", "2"), ("user", "2 + 3?")]
    given = [{"role": role, "content": content, "name": None} for role, content in shots]
    assert [(each.role, each.content) for each in prompt_messages(given)] == shots
    for wrong, message in (
        ([], "need a text, or a list of messages"),
        (3, "got the prompt 3; need a text"),
        (given[:2], "whose last one is the user's"),
        ([{"role": "user", "content": ["a"]}], "got the message .*need .*TEXT"),
        ([{"role": "tool", "content": "a"}], "with a role of system, user, assistant"),
        ([{"role": "user", "content": "a", "tool_calls": []}], "got the message"),
        (["a"], "got the message 'a'"),
    ):
        with pytest.raises(ValueError, match=message):
            prompt_messages(wrong)
