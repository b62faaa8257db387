"""Growth beside the update: a version behind, the same whatever is done first, resumed exactly."""

import asyncio
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tests.small import MEASURED
from tests.small import run as small
from tests.trees import chains

from bough.config import ConfigError
from bough.critics import ValueHead
from bough.engine import EngineFault, Local
from bough.engine.generation import LocalEngine
from bough.engine.model import ServedPolicy
from bough.hooks import Tracker
from bough.learner import Diverged, Learner
from bough.objective import Kl, PpoClip, Reinforce, Sum, Tis
from bough.rollout import Deadlines, RolloutRunner, Rollouts
from bough.searches.puct import puct
from bough.store import RunDirectory, read_metrics, read_trees
from bough.train import Checkpointing, Health, NoLearningSignal, Run, resume, start
from bough.train.check import check
from bough.train.growing import GrowingBatch, GrowingBatches
from bough.train.in_thread import in_thread
from bough.tree import Credited, Source, Tree

EPOCHS, STEPS = 14, 5


def brief(**changes: Any) -> Run:
    """A few steps from an agent that sometimes succeeds."""
    warmup = replace(small().world.warmup, epochs=EPOCHS)
    return small().replace(
        warmup=warmup,
        filters=(),
        steps=STEPS,
        checkpointing=Checkpointing(every=1, keep=100, trees_every=1),
        health=Health(dead_batches=100),
        **changes,
    )


def rows(directory: RunDirectory) -> list[dict[str, object]]:
    return [
        {name: value for name, value in row.items() if not name.startswith(MEASURED)}
        for row in read_metrics(directory.metrics)
        if row["phase"] == "rl"
    ]


def versions(directory: RunDirectory) -> list[set[int]]:
    """The versions of the policy that sampled in each step."""
    found = [read_trees(directory.trees_of(EPOCHS + step), Credited) for step in range(1, STEPS + 1)]
    return [
        {int(v) for one in trees for v in one.tree.policy_version[one.tree.source == Source.SAMPLED]} for trees in found
    ]


def same_weights(one: RunDirectory, other: RunDirectory) -> bool:
    mine, theirs = (load_file(each.final / "model.safetensors") for each in (one, other))
    return all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


def test_trees_are_a_version_behind_from_the_second_step_on(tmp_path: Path) -> None:
    now = start(brief(name="now"), tmp_path, terminal=False)
    behind = start(brief(name="behind", staleness=1), tmp_path, terminal=False)
    # Two optimizer steps a batch.
    assert versions(now) == [{0}, {2}, {4}, {6}, {8}]
    assert versions(behind) == [{0}, {0}, {2}, {4}, {6}]
    mine, theirs = rows(now), rows(behind)
    assert [row.pop("policy/staleness") for row in theirs] == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert [row.pop("policy/staleness_max") for row in theirs] == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert mine[0] == theirs[0], "the first step"
    assert mine[1] != theirs[1]
    assert ["policy/gap" in row for row in theirs] == [True, False, False, False, False]
    drift = [float(str(row["policy/drift"])) for row in theirs[1:]]
    assert min(drift) > 10 * float(str(theirs[0]["policy/gap"])), "the policy has moved since it sampled"
    first = [read_trees(each.trees_of(EPOCHS + 1), Credited) for each in (now, behind)]
    for one, other in zip(*first, strict=True):
        assert np.array_equal(one.tree.token, other.tree.token)
        assert np.array_equal(one.positive, other.positive)
    measured = read_metrics(behind.metrics)[-2]
    assert {"time/grow/engine_s", "time/grow/env_s", "time/grow/idle_s", "time/learn_s"} <= measured.keys()
    assert 1 < float(measured["speed/in_flight"]) <= float(measured["train/paths"])
    assert float(measured["time/grow/engine_passes"]) >= 1
    idle = float(measured["time/grow/idle_s"])
    assert 0 <= idle < float(measured["time/grow_s"])


def test_the_same_run_whatever_is_done_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of workers, and of growth and update; in two rounds, of which the second is grown by the newest policy."""
    engine = Local(slots=32, deterministic=True)
    run = brief(staleness=1, max_sampling_rounds=2, engine=engine, workers=2).replace(
        steps=3, filters=small().world.filters
    )
    one = start(run.replace(name="one"), tmp_path, terminal=False)
    learn = Learner.learn

    def slowly(self: Learner, *given: Any, **named: Any) -> dict[str, float]:
        if self.settings.minibatches == 2:
            time.sleep(0.5)
        return learn(self, *given, **named)

    monkeypatch.setattr(Learner, "learn", slowly)
    other = start(run.replace(name="other"), tmp_path, terminal=False)
    assert rows(one) == rows(other)
    assert same_weights(one, other)
    mixed = read_trees(one.trees_of(EPOCHS + 2), Credited)
    found = {int(each.tree.policy_version.max()) for each in mixed}
    assert found == {0, 2}
    assert "policy/gap" in rows(one)[1], "of what the newest policy sampled"


def test_resumed_exactly_from_every_checkpoint(tmp_path: Path) -> None:
    """The state of a tracker and the tasks that are drawn next are as they were; every step has a new reference."""
    objective = Sum(terms=(PpoClip(), Kl(coefficient=0.5)))
    run = brief(staleness=1, hooks=(Tracker(choose=True),), reference="step", objective=objective)
    whole = start(run.replace(name="whole"), tmp_path, terminal=False)
    told = rows(whole)
    kept = sorted(whole.checkpoints.iterdir())
    for count in (1, 3, 5):
        again = tmp_path / f"again_{count}"
        shutil.copytree(whole.path, again)
        shutil.rmtree(again / "final")
        for checkpoint in kept[count:]:
            shutil.rmtree(again / "checkpoints" / checkpoint.name)
        other = resume(again, terminal=False)
        assert rows(other) == told
        assert same_weights(whole, other)


def test_an_adviser_hears_of_one_update_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of all that the policy has moved since it sampled."""
    learn = Learner.learn

    def idles(self: Learner, *given: Any, **named: Any) -> dict[str, float]:
        if self.settings.minibatches == 2 and self.updates == 2:
            return {"policy/gap": 0.0, "optimizer/gradient_norm": 0.0}
        return learn(self, *given, **named)

    monkeypatch.setattr(Learner, "learn", idles)
    run = brief(staleness=1, hooks=(Tracker(),)).replace(steps=2)
    told = [float(str(row["tracker/divergence"])) for row in rows(start(run, tmp_path, terminal=False))]
    assert told[0] > 1e-4
    assert abs(told[1]) < 1e-8


class Broken(RuntimeError):
    """What a test breaks with."""


def test_an_error_in_the_update_stops_the_run_with_its_own_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, threads = Learner.learn, list[str]()

    def breaks(self: Learner, *given: Any, **named: Any) -> dict[str, float]:
        threads.append(threading.current_thread().name)
        if self.updates == 2 and self.settings.minibatches == 2:
            raise Diverged("update 2: got a loss of nan")
        return learn(self, *given, **named)

    monkeypatch.setattr(Learner, "learn", breaks)
    with pytest.raises(Diverged, match="update 2: got a loss of nan"):
        start(brief(staleness=1), tmp_path, terminal=False)
    assert threads[0] == "MainThread" != threads[-1], "the warm-up, then beside growth"
    assert "update 2: got a loss of nan" in (tmp_path / "small" / "report.html").read_text()


def test_an_error_in_growth_waits_for_the_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, learn = list[int](), Learner.learn

    def slowly(self: Learner, *given: Any, **named: Any) -> dict[str, float]:
        if self.settings.minibatches == 2:
            time.sleep(0.2)
        metrics = learn(self, *given, **named)
        ended.append(self.updates)
        return metrics

    async def breaks(self: RolloutRunner, *given: Any, **named: Any) -> Rollouts:
        if isinstance(batch := named.get("store"), GrowingBatch) and batch.step == EPOCHS + 2:
            raise Broken("no more trees")
        return await run(self, *given, **named)

    run = RolloutRunner.run
    monkeypatch.setattr(Learner, "learn", slowly)
    monkeypatch.setattr(RolloutRunner, "run", breaks)
    with pytest.raises(Broken, match="no more trees"):
        start(brief(staleness=1), tmp_path, terminal=False)
    assert ended[-1] == 2, "the update of the first step"


def test_work_in_a_thread_has_as_many_threads_as_the_run_asked_for() -> None:
    growing, deadlines = threading.Event(), Deadlines()

    def update() -> tuple[int, str]:
        assert growing.wait(120), "the event loop goes on beside it"
        return torch.get_num_threads(), deadlines.table()

    async def both() -> tuple[int, str]:
        asyncio.get_running_loop().call_later(0.01, growing.set)
        return await in_thread(update, deadlines, owner="step 7", thing="end of the update")

    threads, table = asyncio.run(both())
    assert threads == torch.get_num_threads()
    assert "step 7  <-  end of the update" in table


def test_batches_survive_a_checkpoint() -> None:
    """A complete one, and one of whose trees some are finished: the others are grown, those are not."""
    trees = (chains([1.0, 0.0], task="0"), chains([0.5], turns=2, task="1"), chains([0.25], task="2"))
    grown = list[tuple[int, int]]()

    async def grow(batch: GrowingBatch) -> Rollouts:
        batch.tasks = batch.tasks or tuple(tree.task for tree in trees)
        found = list[Tree]()
        for place, tree in enumerate(trees):
            kept = batch.get(place, tree.task)
            if kept is None:
                if batch.step == 2 and place == 1 and not resumed:
                    await asyncio.Event().wait()
                grown.append((batch.step, place))
                kept = tree
                batch.put(place, tree)
            found.append(kept)
        return Rollouts(trees=tuple(found), unstarted={"b": "no"})

    async def stopped() -> Mapping[str, torch.Tensor]:
        batches = GrowingBatches(grow)
        assert batches.state() == {}
        batches.load_state({})
        for step in (1, 2):
            batches.start(step, 10 * step)
        await batches.complete(1)
        await batches.stop(keep=True)
        return batches.state()

    async def taken(state: Mapping[str, torch.Tensor]) -> list[Rollouts]:
        batches = GrowingBatches(grow)
        batches.load_state(state)
        for step in (1, 2):
            batches.start(step, 99)
        found = [await batches.take(step) for step in (1, 2)]
        assert len(batches) == 0
        return found

    resumed = list[bool]()
    state = asyncio.run(stopped())
    assert grown == [(1, 0), (1, 1), (1, 2), (2, 0)]
    resumed.append(True)
    for found in asyncio.run(taken(state)):
        assert found.unstarted == {"b": "no"}
        for one, two in zip(found.trees, trees, strict=True):
            assert one.task == two.task
            assert one.info == two.info
            for name, column in two.columns().items():
                assert one.columns()[name].tobytes() == column.tobytes(), name
    assert grown[4:] == [(2, 1), (2, 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """An engine that breaks once it has new weights."""

    def build(self, policy: ServedPolicy) -> "FailingEngine":
        return FailingEngine(Local(slots=32), policy.replica())


class FailingEngine(LocalEngine):
    async def generate(self, request: Any) -> Any:
        if self.policy_version > 0:
            raise EngineFault("gone")
        return await super().generate(request)


def test_a_dead_run_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(NoLearningSignal, match="The last fault: gone"):
        start(brief(staleness=1, engine=Failing()), tmp_path, terminal=False)
    assert len(read_metrics(tmp_path / "small" / "metrics.jsonl")) == EPOCHS + 2, (
        "two batches of version 0 were learned from"
    )
    flat = brief(staleness=1, name="flat", rewards=()).replace(health=Health(dead_batches=2))
    with pytest.raises(NoLearningSignal, match="2 batches in a row had no advantage"):
        start(flat, tmp_path, terminal=False)


def test_what_cannot_be_right_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Execution.staleness: got 9; need 0 to 8"):
        brief(staleness=9)
    run = brief(staleness=1)
    check(run)
    for objective in (Reinforce(), Sum(terms=(Reinforce(), Kl()))):
        with pytest.raises(ConfigError, match="needs rollouts of the current weights; got staleness=1"):
            check(run.replace(objective=objective))
    check(run.replace(objective=Tis(objective=Reinforce())))
    with pytest.raises(ConfigError, match="got staleness=1"):
        check(run.replace(optimizer=replace(run.world.optimizer, momentum="igt")))
    searching = run.replace(explorer=puct(), critic=ValueHead())
    with pytest.raises(ConfigError, match="got staleness=1"):
        check(searching)
    check(searching.replace(staleness=0))
