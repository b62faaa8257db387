"""Runs whose gradients several ranks compute."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.small import MEASURED
from tests.small import run as small

from bough.config import ConfigError
from bough.store import read_metrics
from bough.train import resume, start
from bough.train.check import check


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    """The metrics of the run in one process."""
    return rows(tmp_path_factory.mktemp("alone"), 1, "ranks=1")


def rows(folder: Path, ranks: int, *resumed_with: str, shard: bool = False) -> list[dict[str, float]]:
    """The metrics of a run that begins with some ranks, and is resumed with others."""
    run = small().replace(policy=replace(small().world.policy, dtype="float64"))
    directory = start(run.replace(ranks=ranks, shard=shard, steps=2), folder)
    resumed = resume(directory.path, ["steps=4", *resumed_with])
    return [_seen(row) for row in read_metrics(resumed.metrics)]


def same(one: list[dict[str, float]], other: list[dict[str, float]]) -> None:
    assert len(one) == len(other)
    for here, there in zip(one, other, strict=True):
        assert there == pytest.approx(here, rel=1e-5, abs=1e-8, nan_ok=True)


def test_a_run_with_ranks_is_that_of_one_process_and_resumes_with_another_number(
    alone: list[dict[str, float]], tmp_path: Path
) -> None:
    same(alone, rows(tmp_path, 2, "ranks=1"))


def test_a_run_with_shards_is_that_of_one_process_and_resumes_without(
    alone: list[dict[str, float]], tmp_path: Path
) -> None:
    same(alone, rows(tmp_path, 2, "ranks=1", "shard=false", shard=True))


def test_a_run_resumes_with_shards(alone: list[dict[str, float]], tmp_path: Path) -> None:
    same(alone, rows(tmp_path, 1, "ranks=4", "shard=true"))


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({"momentum": "igt"}, "optimizer.momentum: got 'igt' with execution.shard=true; need 'adam'"),
        ({"cpu_workers": 2}, "optimizer.cpu_workers: got 2 with execution.shard=true; need 1"),
        ({"memory_gib": 1.0}, "optimizer.memory_gib: got 1.0 with execution.shard=true; need None"),
    ],
)
def test_settings_that_shards_do_not_support_are_refused(settings: dict[str, object], needs: str) -> None:
    run = small().replace(ranks=2, shard=True)
    with pytest.raises(ConfigError, match=needs):
        check(run.replace(optimizer=replace(run.world.optimizer, **settings)))


def test_shards_need_several_ranks() -> None:
    with pytest.raises(ConfigError, match="need at least 2 ranks"):
        check(small().replace(shard=True))


def _seen(row: dict[str, object]) -> dict[str, float]:
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if not name.startswith(MEASURED)}
