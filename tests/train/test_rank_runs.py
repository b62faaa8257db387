"""Runs whose gradients several ranks compute."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.small import MEASURED
from tests.small import run as small

from bough.store import read_metrics
from bough.train import resume, start


def test_a_run_with_ranks_is_that_of_one_process_and_resumes_with_another_number(tmp_path: Path) -> None:
    run = small().replace(policy=replace(small().world.policy, dtype="float64"))
    rows = []
    for count in (1, 2):
        directory = start(run.replace(name=f"ranks{count}", ranks=count, steps=2), tmp_path)
        resumed = resume(directory.path, ["steps=4", "ranks=1"])
        rows.append([_seen(row) for row in read_metrics(resumed.metrics)])
    assert len(rows[0]) == len(rows[1])
    for one, several in zip(*rows, strict=True):
        assert several == pytest.approx(one, rel=1e-5, abs=1e-8, nan_ok=True)


def _seen(row: dict[str, object]) -> dict[str, float]:
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if not name.startswith(MEASURED)}
