from pathlib import Path

import pytest

from bough.store import digest, digest_tasks, read_tasks, write_tasks
from bough.tree import Action, BadCall, Task, ToolCall

CALLS = Action(text="so", calls=(ToolCall(name="f", arguments={"x": 1}), BadCall(text="f(", problem="cut")))
TASKS = [
    Task(id="a", seed=3, data={"rows": ["SF", "FG"], "é": None}),
    Task(id="b"),
    Task(id="b").after(["go", "on"]),
    Task(id="b").after([CALLS, "on"]),
]


def test_tasks_come_back(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    write_tasks(path, TASKS)
    assert read_tasks(path) == TASKS
    assert digest_tasks(TASKS) == digest(path)
    assert digest_tasks(TASKS[:1]) != digest(path)


def test_seed_and_data_may_be_left_out_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('\n{"id": "a"}\r\n\n{"id": 0, "seed": 2}')
    assert read_tasks(path) == [Task(id="a"), Task(id="0", seed=2)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "x", "data": {', "no JSON"),
        ("[1, 2]", "no object"),
        ('{"seed": 1}', "no 'id'"),
        ('{"id": ""}', "no 'id'"),
        ('{"id": "x", "seed": "1"}', "a 'seed' that is no whole number"),
        ('{"id": "x", "seed": 18446744073709551616}', "a 'seed' that is no whole number of 64 bits"),
        ('{"id": true}', "no 'id'"),
        ('{"id": "x", "seed": true}', "a 'seed' that is no whole number"),
        ('{"id": "x", "data": []}', "a 'data' that is no object"),
        ('{"id": "x", "start": "up"}', "a 'start' that is no list of actions"),
        ('{"id": "x", "start": [1]}', "a 'start' that is no list of actions"),
        ('{"id": "x", "start": [{"text": "up"}]}', "a 'start' that is no list of actions"),
        ('{"id": "x", "sed": 1}', r"unknown field \['sed'\]"),
    ],
)
def test_a_broken_line_is_named_and_shown(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(f'{{"id": "a"}}\n{line}\n')
    need = 'need one task, such as ."id"'
    with pytest.raises(ValueError, match=f"tasks.jsonl, line 2: got .*{problem}.*{need}") as caught:
        read_tasks(path)
    assert line in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b'{"id": "\xff\xfe' + b"x" * 200 + b'"}\n')
    with pytest.raises(ValueError, match=r"line 1: got no UTF-8 \(.* 0xff\)"):
        read_tasks(path)


def test_an_id_twice_is_named_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b"}\n{"id": "a"}\n')
    with pytest.raises(ValueError, match=r"line 3: got id 'a', which .*tasks.jsonl, line 1 has too"):
        read_tasks(path)


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n\n")
    with pytest.raises(ValueError, match=r"tasks\.jsonl: got no task"):
        read_tasks(path)
