import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bough.store import Metrics, StoreError, read_metrics


def test_lines_come_back(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.jsonl")
    metrics.write(0, {"heldout/success": 0.25, "phase": "warmup"})
    metrics.write(3, {"loss/total": math.inf, "paths/failed": 2})
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows[0] == {"step": 0, "heldout/success": 0.25, "phase": "warmup"}
    assert rows[1]["step"] == 3
    assert rows[1]["paths/failed"] == 2
    assert math.isnan(rows[1]["loss/total"])
    strict = [
        json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()
    ]
    assert strict[1]["loss/total"] is None


def test_an_unfinished_line_is_dropped_and_never_joined_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    Metrics(path).write(1, {"a": 0.5})
    with path.open("a") as file:
        file.write('{"step": 2, "a": 0.7')
    assert [row["step"] for row in read_metrics(path)] == [1]
    Metrics(path).write(2, {"a": 0.9})
    assert read_metrics(path) == [{"step": 1, "a": 0.5}, {"step": 2, "a": 0.9}]


def test_a_run_resumes_at_a_step(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    first = Metrics(path)
    for step in range(1, 6):
        first.write(step, {"a": float(step)})
    again = Metrics(path)
    again.resume_at(3)
    again.write(4, {"a": 40.0})
    assert read_metrics(path) == [
        {"step": step, "a": value} for step, value in ((1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0))
    ]


def test_resume_before_the_first_line(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.jsonl")
    metrics.resume_at(0)
    metrics.write(1, {"a": 1.0})
    assert read_metrics(tmp_path / "metrics.jsonl") == [{"step": 1, "a": 1.0}]


def test_steps_ascend(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    Metrics(path).write(4, {"a": 1.0})
    with pytest.raises(ValueError, match=r"got step 4 .* after step 4; need ascending"):
        Metrics(path).write(4, {"a": 1.0})
    with pytest.raises(ValueError, match="no value called 'step'"):
        Metrics(path).write(5, {"step": 5.0})


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for line in ("hello", "[" * 50_000, '{"step": "2"}', '{"step": 2, "a": [1]}'):
        path.write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
        with pytest.raises(StoreError, match=r"metrics\.jsonl, line 2: got b'"):
            read_metrics(path)


def test_the_store_imports_nothing_heavy() -> None:
    code = (
        "import sys; import bough.store\n"
        "heavy = {'torch', 'transformers', 'rich', 'tensorboard'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
