"""Invariant 7: kill the process anywhere, resume, and the finished run is bit-equal to the uninterrupted one."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.numpy import load_file

import small
from bough.curate import Signal
from bough.train import Saving, resume, start

SMALL = Path(__file__).parents[1] / "small.py"


def _bough(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bough", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    return output


def _rows(directory: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.startswith(small.MEASURED)} for row in rows]


@pytest.mark.parametrize("staleness", [0, 1])
def test_a_killed_run_ends_as_if_it_had_not_been_killed(staleness: int, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run = (f"{SMALL}:slow", f"staleness={staleness}", "--out", str(tmp_path))
    _finish(_bough("train", *run, "name=whole"))
    chance = random.Random(int.from_bytes(os.urandom(4), "big"))
    process = _bough("train", *run, "name=killed")
    deaths = 0
    for kill_after_rows in sorted(chance.sample(range(1, 50), 3)):
        while process.poll() is None and _lines(killed) < kill_after_rows:
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.1))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            deaths += 1
            process = _bough("resume", str(killed))
    _finish(process)
    assert deaths >= 1
    one, other = load_file(whole / "final" / "model.safetensors"), load_file(killed / "final" / "model.safetensors")
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert tensor.tobytes() == other[name].tobytes(), name
    assert _rows(whole) == _rows(killed)
    assert (killed / "report.html").is_file()


def test_steps_without_an_update_are_resumed_exactly_too(tmp_path: Path) -> None:
    """Nothing is synced after such a step, so only `forget` keeps its cache from the next: step 25 would differ."""
    idle = replace(small.slow(), name="idle", steps=6, admit=(Signal(tolerance=9.0),), saving=Saving(every=1, keep=100))
    directory = start(idle, tmp_path).path
    rows = _rows(directory)
    assert all("policy/gap" not in row for row in rows if row["phase"] == "rl")
    for checkpoint in sorted((directory / "checkpoints").iterdir())[-3:]:
        shutil.rmtree(checkpoint)
    resume(directory)
    assert _rows(directory) == rows


def _lines(directory: Path) -> int:
    path = directory / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0
