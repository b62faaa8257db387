"""The loggers of a run: what they write, what they miss, and what a resumed run adds."""

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.forks import command
from tests.loggers.lines import Failing, Hanging, Lines
from tests.small import run as small
from tests.talk import SMALL

from bough.config import ConfigError
from bough.loggers import Logger, RunLoggers, TensorBoard, logger_thread, run_loggers
from bough.store import Metrics, RunDirectory, read_metrics
from bough.train import Run, resume, start

LINES = Path(__file__).with_name("lines.py")


def two_steps(*loggers: Logger) -> Run:
    run = small()
    return run.replace(name="logged", steps=2, warmup=replace(run.world.warmup, epochs=1), loggers=loggers)


def written(directory: RunDirectory, name: str = "Lines") -> list[dict[str, float]]:
    """By step, all that a logger got; a step with further values has two lines."""
    file = directory.loggers / name / "lines.jsonl"
    rows = dict[int, dict[str, float]]()
    for line in file.read_text().splitlines() if file.exists() else ():
        row = json.loads(line)
        before = rows.setdefault(row["step"], {})
        assert before.keys() & row.keys() <= {"step"}, "a value is written twice"
        before |= row
    return list(rows.values())


def numbers(directory: RunDirectory) -> list[dict[str, float]]:
    """The numbers of metrics.jsonl."""
    rows = read_metrics(directory.metrics)
    return [{name: value for name, value in row.items() if not isinstance(value, str)} for row in rows]


def test_a_logger_gets_the_rows_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = start(two_steps(Lines(), Lines(), Failing(), Failing(at_start=True)), tmp_path, terminal=False)
    assert [row["step"] for row in numbers(directory)] == [1, 2, 3]
    assert written(directory) == written(directory, "Lines-2") == numbers(directory)
    assert "heldout/success" in written(directory)[0], "the evaluation comes after the row of the last epoch"
    assert (directory.loggers / "Lines" / "state").read_text() == "finished"
    said = capsys.readouterr().out
    assert "Lines: lines" in said
    assert said.count("the logger Failing failed") == said.count("the logger Failing-2 failed") == 1
    assert re.search(r"\(OSError: no space for \d+ values of step 1\); the run goes on", said)
    assert "(ConnectionError: no route to the tracker); the run goes on" in said
    assert "the logger Failing lacks all rows at the end of the run; metrics.jsonl has them" in said


def test_a_killed_run_misses_no_step_and_doubles_none(tmp_path: Path) -> None:
    """Killed at a step after its last checkpoint, which the run computes again."""
    settings = ("steps=3", "warmup.epochs=2", "warmup.demonstrations=4", "evaluation.tasks.count=2")
    loggers = f"loggers=[{LINES}:Lines(kill_at=4), {LINES}:Lines(kill_at=0)]"
    with command(
        "train", f"{SMALL}:run", "name=a", "checkpointing.every=2", *settings, loggers, "--out", tmp_path
    ) as killed:
        assert killed.wait().status == -9, killed.printed
    directory = resume(tmp_path / "a", terminal=False)
    assert (directory.loggers / "Lines" / "killed").exists()
    for name in ("Lines", "Lines-2"):
        rows = written(directory, name)
        assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
        assert [
            {key: row[key] for key in row if not key.startswith(("time/", "speed/", "memory/"))} for row in rows
        ] == [
            {key: row[key] for key in row if not key.startswith(("time/", "speed/", "memory/"))}
            for row in numbers(directory)
        ]
    records = json.loads(directory.logger_records.read_text())["loggers"]
    assert [record["step"] for record in records] == [5, 5]
    assert records[0]["id"] == "+a+a", "the second process got the id of the first"


def logged(
    directory: RunDirectory, loggers: Sequence[Logger], rows: Sequence[Mapping[str, float]], at: int
) -> list[str]:
    """One process of a run: it goes on at a step, writes rows, and ends; returns its lines."""
    said, metrics = list[str](), Metrics(directory.metrics)
    metrics.resume_at(at)
    with RunLoggers("a", two_steps(), loggers, directory, said.append) as threads:
        threads.begin(at)
        for row in rows:
            step, values = int(row["step"]), {name: value for name, value in row.items() if name != "step"}
            metrics.write(step, values)
            threads.log(step, values)
    return said


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "a")


def test_a_logger_that_is_added_later_gets_all_rows(directory: RunDirectory) -> None:
    logged(directory, (), [{"step": 1, "a": 1}, {"step": 2, "a": 2}], -1)
    logged(directory, (Lines(),), [{"step": 3, "a": 3}], 2)
    assert written(directory) == [{"step": step, "a": float(step)} for step in (1, 2, 3)]
    assert logged(directory, (), [{"step": 4, "a": 4}], 3) == []
    logged(directory, (Lines(),), [{"step": 5, "a": 5}], 4)
    assert [row["step"] for row in written(directory)] == [1, 2, 3, 4, 5], "a process without the logger"


def test_further_values_of_a_row_are_added_to_it(directory: RunDirectory) -> None:
    logged(directory, (Lines(),), [{"step": 1, "a": 1}], -1)
    with RunLoggers("a", two_steps(), (Lines(),), directory, print) as threads:
        threads.begin(1)
        threads.log(1, {"b": 2.0, "c": math.inf, "phase": "rl"}, more=True)
    (row,) = written(directory)
    assert (row["a"], row["b"]) == (1.0, 2.0)
    assert math.isnan(row["c"])
    assert "phase" not in row


def test_rows_for_which_the_queue_is_full_are_read_from_the_file(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_thread, "QUEUE_ROWS", 1)
    rows = [{"step": step, "a": float(step)} for step in range(1, 40)]
    logged(directory, (Lines(),), rows, -1)
    assert written(directory) == rows


def test_a_logger_that_hangs_does_not_stop_the_run(directory: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_loggers, "FLUSH_S", 0.1)
    began = time.monotonic()
    said = logged(directory, (Hanging(),), [{"step": 1, "a": 1.0}], -1)
    assert time.monotonic() - began < 10
    assert ["the logger Hanging lacks all rows" in line for line in said] == [True]


def test_a_row_is_tried_again_after_an_error(directory: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger_thread, "RETRY_S", 0.0)
    in_the_way = directory.loggers / "Lines" / "lines.jsonl"
    in_the_way.mkdir(parents=True)
    logged(directory, (Lines(),), [{"step": 1, "a": 1.0}], -1)
    in_the_way.rmdir()
    logged(directory, (Lines(),), [{"step": 2, "a": 2.0}], 1)
    assert written(directory) == [{"step": 1, "a": 1.0}, {"step": 2, "a": 2.0}]


def test_a_logger_without_its_package_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.loggers.logger.is_installed", "tensorboard-of-nowhere".__eq__)
    with pytest.raises(
        ConfigError, match=r"loggers\[0\]: TensorBoard: got no package tensorboard; need the extra: pip install"
    ):
        start(two_steps(TensorBoard()), tmp_path, terminal=False)
    assert not (tmp_path / "logged").exists()
