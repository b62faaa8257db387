"""Runs whose gradients several ranks compute."""

import json
import os
import shutil
import socket
import string
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from tests.loads import tokens_of_shares, without_shares
from tests.small import MEASURED, busy
from tests.small import run as small

from bough.cli import main
from bough.config import ConfigError
from bough.env import State, Step
from bough.launch import Ray
from bough.policy import Lora, Pretrained
from bough.store import Checkpoints, RunDirectory, read_metrics
from bough.train import resume, start
from bough.train.check import check
from bough.train.torchrun import with_ranks_of_torchrun, with_torchrun_ranks
from bough.worlds.frozenlake import FrozenLake

SEEN: list[int] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching(FrozenLake):
    """Notes the number of threads of an operation at each step."""

    def step(self, state: State, action: str) -> Step:
        SEEN.append(torch.get_num_threads())
        return FrozenLake.step(self, state, action)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    """The metrics of the run in one process."""
    return rows(tmp_path_factory.mktemp("alone"), 1, "ranks=1")


def rows(folder: Path, ranks: int, *resumed_with: str, **fields: object) -> list[dict[str, float]]:
    """The metrics of a run that begins with some ranks, and is resumed with others."""
    # AdamW's steps are signs of small gradients, which ranks round in parts: with `epsilon` they are proportional.
    optimizer = replace(small().world.optimizer, epsilon=1e-3)
    run = small().replace(policy=replace(small().world.policy, dtype="float64"), optimizer=optimizer)
    directory = start(run.replace(ranks=ranks, steps=2, **fields), folder)
    resumed = resume(directory.path, ["steps=4", *resumed_with])
    return [_seen(row) for row in read_metrics(resumed.metrics)]


def same(one: list[dict[str, float]], other: list[dict[str, float]]) -> None:
    """The metrics agree, and where there were several ranks, several computed."""
    assert len(one) == len(other)
    for here, there in zip(one, other, strict=True):
        assert without_shares(there) == pytest.approx(here, rel=1e-5, abs=1e-7, nan_ok=True)
    computed = [tokens for row in other if (tokens := tokens_of_shares(row))]
    assert computed
    for tokens in computed:
        # A small batch has few places where it can be divided.
        assert sum(each > 0.2 * sum(tokens) / len(tokens) for each in tokens) >= 2


def test_a_run_with_ranks_is_that_of_one_process_and_resumes_with_another_number(
    alone: list[dict[str, float]], tmp_path: Path
) -> None:
    same(alone, rows(tmp_path, 2, "ranks=1"))


def test_adapters_are_resumed_with_another_number_of_ranks_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small().world.policy.build([string.printable]).save(tmp_path / "base")
    policy = Pretrained(path=str(tmp_path / "base"), dtype="float64", lora=Lora(rank=2))
    optimizer = replace(busy().world.optimizer, epsilon=1e-3)
    start(busy().replace(policy=policy, optimizer=optimizer, steps=1), tmp_path / "1")
    shutil.copytree(tmp_path / "1", tmp_path / "3")
    several, adapters = list[list[dict[str, float]]](), list[dict[str, torch.Tensor]]()
    for ranks in (1, 3):
        directory = RunDirectory.open(tmp_path / str(ranks) / "busy")
        monkeypatch.setattr(sys, "argv", ["bough", "resume", str(directory.path), "steps=3", f"ranks={ranks}"])
        with pytest.raises(SystemExit, match=r"^0$"):
            main()
        several.append([_seen(row) for row in read_metrics(directory.metrics)])
        checkpoint = Checkpoints(directory=directory.checkpoints).latest().checkpoint
        assert checkpoint is not None
        adapters.append(dict(checkpoint.tensors("policy")))
    same(*several)
    assert [len(tokens_of_shares(row)) for row in several[1][-2:]] == [3, 3]
    for name, weight in adapters[0].items():
        assert "lora" in name
        # They are float32.
        assert float((adapters[1][name] - weight).norm()) <= 1e-6 * float(weight.norm())


def test_a_run_with_shards_is_that_of_one_process_and_resumes_without(
    alone: list[dict[str, float]], tmp_path: Path
) -> None:
    same(alone, rows(tmp_path, 2, "ranks=1", "shard=false", shard=True))


def test_a_run_under_torchrun_is_that_of_one_process(alone: list[dict[str, float]], tmp_path: Path) -> None:
    """The script starts a run and resumes it, with an objective of its own."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = Path(__file__).with_name("under_torchrun.py")
    done = subprocess.run(
        [*torchrun, str(script), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "BOUGH_SECRET": "of all machines"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    same(alone, json.loads(done.stdout.splitlines()[-1]))
    assert done.stdout.count("resumed after step") == 1
    assert '"ranks": 2' in (tmp_path / "small" / "config.json").read_text()
    (place,) = RunDirectory(path=tmp_path / "small").read_manifest()["places"]
    assert (place["cluster"]["kind"], place["ranks"]) == ("torchrun", [socket.gethostname()] * 2)


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({"ranks": 2}, "ranks: got 2 with 4 processes of torchrun; need ranks=4"),
        ({"ranks": 4, "min_ranks": 2}, "min_ranks: got 2 under torchrun, which starts the ranks"),
        ({"rank_placement": Ray()}, "rank_placement: got Ray.* under torchrun, which has started the ranks"),
    ],
)
def test_ranks_other_than_those_of_torchrun_are_refused(
    changes: dict[str, object], needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"TORCHELASTIC_RUN_ID": "a", "MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "4"}
    for name, value in (variables | {"MASTER_ADDR": "localhost"}).items():
        monkeypatch.setenv(name, value)
    for ranks in (1, 4):
        assert with_torchrun_ranks(small().replace(ranks=ranks)).world.execution.ranks == 4
    stored = small().replace(ranks=3, min_ranks=2)
    assert with_torchrun_ranks(with_ranks_of_torchrun(stored)).world.execution.ranks == 4, "other machines than before"
    with pytest.raises(ConfigError, match=needs):
        with_torchrun_ranks(small().replace(**changes))


def test_a_run_resumes_with_shards(alone: list[dict[str, float]], tmp_path: Path) -> None:
    same(alone, rows(tmp_path, 1, "ranks=4", "min_ranks=2", "shard=true"))


@pytest.mark.parametrize(
    ("threads", "cpu_workers", "shares", "inside"), [(3, 0, 3, 1), (2, 1, 1, 2), (2, 2, 2, 2), (1, 0, 1, 1)]
)
def test_threads_share_batches_of_a_small_policy(
    threads: int, cpu_workers: int, shares: int, inside: int, tmp_path: Path
) -> None:
    """Unless `optimizer.cpu_workers` says how many do; generation then has one thread an operation."""
    optimizer = replace(small().world.optimizer, cpu_workers=cpu_workers)
    before = torch.get_num_threads()
    SEEN.clear()
    run = small().replace(env=Watching(size=3, max_steps=6), threads=threads, steps=1, optimizer=optimizer)
    directory = start(run, tmp_path)
    # The first states belong to the tasks and their demonstrations, before there is a policy.
    assert SEEN[-1] == inside
    assert torch.get_num_threads() == before, "the next run of this process begins with as many"
    assert len(tokens_of_shares(read_metrics(directory.metrics)[-1])) == (shares if shares > 1 else 0)


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
    # The gap between engine and learner is rounding alone.
    left_out = (*MEASURED, "policy/canary_gap")
    return {name: float(value) for name, value in numbers.items() if not name.startswith(left_out)}
