"""A run on a Ray cluster of this machine: equal to the run in one process, and its processes are replaced."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import chdir, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.env import worlds
from tests.learner.test_rank_faults import learn_under_strike
from tests.loads import without_shares
from tests.missing import need
from tests.small import MEASURED
from tests.small import run as small

from bough.engine import Local, Replicas
from bough.env import EnvFault, Workers
from bough.launch import LaunchError, Ray, kept_logs
from bough.launch.ray_connect import NICENESS
from bough.learner.leading_rank import LeadingRank
from bough.learner.rank_processes import LaunchedRanks
from bough.store import RunDirectory, read_metrics
from bough.train import Checkpointing, start
from bough.tree import Task

need("ray")
ray: Any = import_module("ray")

SMALL = Ray(cpus=0.1)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # By default its processes have the lowest priority.
        patch.setenv(NICENESS, "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def rows(directory: RunDirectory) -> list[dict[str, object]]:
    found = read_metrics(directory.metrics)
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in found]


def test_a_run_on_ray_equals_that_of_one_process(tmp_path: Path) -> None:
    """Environments, engines and the learner's ranks; completions do not depend on which engine samples them."""
    engine = Local(slots=32, deterministic=True)
    # AdamW's steps are signs of small gradients, which ranks round in parts: with `epsilon` they are proportional.
    run = small().replace(
        policy=replace(small().world.policy, dtype="float64"),
        optimizer=replace(small().world.optimizer, epsilon=1e-3),
        warmup=replace(small().world.warmup, epochs=14),
        filters=(),
        steps=3,
        engine=engine,
        checkpointing=Checkpointing(every=100),
    )
    alone = start(run.replace(name="alone"), tmp_path, terminal=False)
    spread = run.replace(
        name="spread",
        workers=2,
        worker_placement=SMALL,
        engine=Replicas(engine=engine, placement=SMALL),
        ranks=2,
        rank_placement=SMALL,
    )
    for one, other in zip(rows(alone), rows(start(spread, tmp_path, terminal=False)), strict=True):
        shares = [value for name, value in other.items() if name.startswith("update/tokens/")]
        assert all(shares), "both ranks computed"
        assert one.keys() == without_shares(other).keys()
        for name, value in one.items():
            assert other[name] == (pytest.approx(value, rel=1e-5, abs=1e-7) if isinstance(value, float) else value), (
                name
            )
    assert _no_actors()


def test_a_worker_that_is_killed_or_whose_actor_dies_is_replaced() -> None:
    lines = list[str]()
    host = Workers(env=worlds.Trouble(), count=2, deadline_s=20, placement=SMALL, notify=lines.append)

    async def steps_until(replaced: int) -> None:
        for _ in range(200):
            with suppress(EnvFault):
                state = await host.start(Task(id="a", seed=0))
                await host.step(state, "a")
            if host.replaced == replaced:
                break
            await asyncio.sleep(0.05)
        assert host.replaced == replaced
        assert await host.start(Task(id="a", seed=0))

    async def use() -> None:
        await host.start(Task(id="a", seed=0))
        first: Any = host._workers[0]._process
        os.kill(first.child.pid, signal.SIGKILL)
        await steps_until(1)
        second: Any = host._workers[0]._process
        assert second.child.pid != first.child.pid
        ray.kill(second.child._actor)
        await steps_until(2)
        await host.close()

    asyncio.run(use())
    assert all("died" in line for line in lines)
    assert _no_actors()


@pytest.mark.parametrize("killed", ["process", "actor"])
def test_a_rank_that_is_killed_is_replaced_and_the_update_repeated(killed: str) -> None:
    lines = list[str]()
    processes: Any = LaunchedRanks(2, SMALL)
    several = LeadingRank(processes, notify=lines.append, update_s=60.0)
    try:
        (first,) = [rank.process for rank in processes._running.values()]
        strike = {"process": lambda: os.kill(first.pid, signal.SIGKILL), "actor": lambda: ray.kill(first._actor)}
        learn_under_strike(several, strike[killed])
        (line,) = lines
        assert line.endswith("; all ranks start again (rank/replaced)")
        assert "gloo/" not in line
        assert "GLHF" not in line
        assert several.pids != (first.pid,)
    finally:
        several.close()
    assert _no_actors()


def test_what_a_process_prints_is_a_file_of_the_run(tmp_path: Path) -> None:
    launcher = SMALL.reserve("environment workers", 1)
    with kept_logs(tmp_path / "logs"):
        process = launcher.launch("builtins:print", 0)
        process.connect(60).close()
        file, end = tmp_path / "logs" / "environment_workers_0.log", time.monotonic() + 60
        while not (file.is_file() and file.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
    assert file.read_text().strip().isdigit(), "the number of its channel"
    process.kill()
    launcher.close()


def test_a_missing_working_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    launcher = SMALL.reserve("test", 1)
    folder = tmp_path / "gone"
    folder.mkdir()
    with chdir(folder):
        folder.rmdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "getcwd", lambda: str(folder))
            process: Any = launcher.launch("os:nothing", 0)
    with pytest.raises(LaunchError, match=rf"machine {socket.gethostname()}: got no folder {folder}; need the run's"):
        process.connect(60)
    assert process._listener.fileno() == -1
    process.kill()
    launcher.close()


def test_an_actor_that_dies_before_it_connects_is_a_launch_error() -> None:
    launcher = SMALL.reserve("test", 1)
    process: Any = launcher.launch("os:nothing", 0)
    ray.kill(process._actor)
    with pytest.raises(LaunchError, match=r"a process did not start: got Actor.*Error from Ray"):
        process.connect(60)
    assert process._listener.fileno() == -1
    launcher.close()


def test_no_free_resources_on_the_cluster_says_how_much_is_needed() -> None:
    with pytest.raises(LaunchError, match=r"got no free resources .* within 1 s; need 3 x .*1.0.* free of"):
        Ray(wait_s=1).reserve("engine", 3)


def _no_actors() -> bool:
    """Whether all actors have ended, at the latest a few seconds later."""
    from ray.util.state import list_actors

    for _ in range(50):
        try:
            alive = [each for each in list_actors() if each.state == "ALIVE"]
        except Exception:  # the state service needs the dashboard
            return True
        if not alive:
            return True
        time.sleep(0.2)
    return False
