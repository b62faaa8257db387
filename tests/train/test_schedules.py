"""Schedules of a run's settings, and a curriculum that drives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.small import run as small

import bough
from bough.config import ConfigError, dump, load, override
from bough.engine import Sampling
from bough.evaluate import CheckSizes
from bough.hooks import BatchHook, HookSetup, SettingDriver
from bough.hooks.hook import Hooks
from bough.hooks.run_hooks import RunHooks
from bough.methods.cpi import cpi
from bough.methods.dapo import dapo
from bough.methods.dr_grpo import dr_grpo
from bough.methods.hi_agent import hi_agent
from bough.objective import Normalizer
from bough.piece import piece
from bough.reward import Overlong
from bough.rollout import Deadlines, Limits
from bough.schedule import CosineSchedule, ExponentialSchedule, LinearSchedule
from bough.store import read_metrics, read_trees
from bough.train import Checkpointing, Evaluation, Runtime, Tasks, Warmup, start
from bough.train.trained import PolicyRole
from bough.tree import Credited, Rewarded, StageError, path_view
from bough.varying import settings_at


def test_the_numbers_in_words() -> None:
    steps = [0.0, 0.25, 0.5, 1.0]
    assert [LinearSchedule(start=1, end=0).at_progress(step) for step in steps] == [1, 0.75, 0.5, 0]
    assert [round(CosineSchedule(start=1, end=0).at_progress(step), 3) for step in steps] == [1, 0.854, 0.5, 0]
    curve = ExponentialSchedule(start=0, end=0.5)
    assert [round(curve.at_progress(step / 4), 3) for step in range(5)] == [0, 0.069, 0.167, 0.305, 0.5]


def test_a_number_and_a_schedule_are_written_in_one_place() -> None:
    run = override(small(), ["sampling.temperature=LinearSchedule(start=1.2,end=0.8)", "limits.tokens=8"])
    assert load(dump(run)) == run
    assert run.world.at(0.5).sampling.temperature == 1.0
    assert override(run, ["sampling.temperature=0.7"]).world.at(0.5).sampling.temperature == 0.7
    assert run.world.at(0.5, {"limits.tokens": 3.6}).limits.tokens == 4, "a whole number"
    stored = dump(run)
    stored["world"]["optimizer"]["schedule"] = "linear"  # type: ignore[call-overload,index]
    with pytest.raises(
        ConfigError, match=r"optimizer.schedule: got 'linear'; need a number or a piece.* another version"
    ):
        load(stored)
    normalizer = Normalizer(by="constant", horizon_tokens=LinearSchedule(start=4, end=8))
    assert settings_at(normalizer, 0.5).horizon_tokens == 6


def test_lengths_of_a_world_hold_for_all_numbers_of_a_schedule() -> None:
    world = override(small(), ["limits.turns=LinearSchedule(start=2,end=6)", "sampling.max_tokens=3"]).world
    assert world.max_path_tokens == 18
    assert [dr_grpo(world).method.normalizer.horizon_tokens, cpi(world, depth=2).method.explorer.trunk] == [18, 4]  # type: ignore[attr-defined]
    report = bough.check_env(world, only=("oracle",), sizes=CheckSizes(tasks=1))
    assert not report.failures


def test_methods_take_the_longest_path_of_a_schedule() -> None:
    world = small().world
    limits = Limits(turns=LinearSchedule(start=2, end=6))
    world = world.replace(limits=limits, sampling=Sampling(max_tokens=3))
    assert dr_grpo(world).method.normalizer.horizon_tokens == 18
    assert dapo(world).world.rewards[-1] == Overlong(limit_tokens=18, buffer_tokens=3)
    with pytest.raises(ValueError, match=r"got LinearSchedule\(start=2, end=6\); need a number"):
        hi_agent(world)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sampling.temperature=LinearSchedule(start=1,end=-1)", r"got LinearSchedule\(start=1.0, end=-1.0\); need 0"),
        ("sampling.temperature=LinearSchedule(start=1,end=0)", "temperature: got 0; need more than 0"),
        ("limits.turns=LinearSchedule(start=0,end=3)", "Limits.turns: got LinearSchedule.* need at least 1"),
        ("sampling.temperature=PickPaths()", "got PickPaths, which lacks at_progress"),
        ("limits.turns=2.5", "need a valid integer"),
        ("sampling.temperature=inf", r"Sampling.temperature: got inf; need 0 \(greedy\)"),
        ("optimizer.schedule=linear", "unknown name 'linear'"),
    ],
)
def test_a_schedule_stays_within_the_bounds_of_its_field(change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        override(small(), [change])


@piece
class Longer:
    """Two more turns after each step, from 1 on; then a lower temperature and learning rate."""

    names: Sequence[str] = ("limits.turns",)

    def build(self, setup: HookSetup) -> "LongerState":
        return LongerState(self, setup)


@dataclass(slots=True, kw_only=True)
class LongerData:
    steps: int = 0


class LongerState(BatchHook[Longer], SettingDriver):
    def __init__(self, settings: Longer, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data = LongerData()

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        return list(rewarded)

    def after_update(self, _divergence: object) -> None:
        self.data.steps += 1

    def drive(self) -> Mapping[str, float]:
        numbers = {"limits.turns": 1.0 + 2 * self.data.steps, "sampling.temperature": 1.0, "optimizer.schedule": 0.25}
        return {name: numbers.get(name, 0.0) for name in self.settings.names}


def brief(tmp_path: Path, **changes: object) -> tuple[list[int], list[dict[str, object]]]:
    """The longest path of each step, in actions, and the metrics."""
    run = small().replace(
        name="r",
        steps=3,
        batch_tasks=4,
        filters=(),
        warmup=Warmup(),
        evaluation=Evaluation(tasks=Tasks(split="test", count=1), every=0),
        optimizer=replace(small().world.optimizer, schedule=1.0, minibatches=1, epochs=1),
        checkpointing=Checkpointing(trees_every=1),
    )
    directory = start(run.replace(**changes), tmp_path, terminal=False)  # type: ignore[arg-type]
    trees = [[each.rewarded for each in read_trees(directory.trees_of(step), Credited)] for step in (1, 2, 3)]
    longest = [int(path_view(some).turns.max(initial=0)) for some in trees]
    return longest, [row for row in read_metrics(directory.metrics) if row.get("phase") == "rl"]


def test_schedules_hold_in_the_steps_of_a_run(tmp_path: Path) -> None:
    """Limits of growth, and the temperature of sampling and of the loss alike."""
    longest, rows = brief(
        tmp_path,
        limits=Limits(turns=LinearSchedule(start=1, end=7)),
        sampling=Sampling(max_tokens=3, temperature=LinearSchedule(start=4, end=1)),
    )
    assert longest[0] == 1
    assert 1 < longest[1] <= 3
    assert 1 < longest[2] <= 5
    assert all(float(row["policy/gap"]) < 1e-4 for row in rows), "tokens are sampled and trained at one temperature"  # type: ignore[arg-type]


def test_a_curriculum_drives_settings(tmp_path: Path) -> None:
    names = ("limits.turns", "optimizer.schedule")
    longest, rows = brief(tmp_path, hooks=(Longer(names=names),))
    assert longest[0] == 1
    assert 1 < longest[1] <= 3
    assert 1 < longest[2] <= 5
    rates = {row["optimizer/learning_rate"] for row in rows if "optimizer/learning_rate" in row}
    assert rates == {0.25 * small().world.optimizer.learning_rate}


def test_a_driven_setting_is_known_and_driven_once(tmp_path: Path) -> None:
    owner = PolicyRole(run=small())

    def drive(*hooks: Longer) -> dict[str, float]:
        return RunHooks([(owner, Hooks(hooks, HookSetup()))]).drive()

    assert drive(Longer()) == {"limits.turns": 1.0}
    for hooks in ((Longer(names=("limits.turn",)),), (Longer(), Longer())):
        with pytest.raises(
            StageError, match=r"adviser_._Longer.drive: got limits.turn.*; need a finite number for one"
        ):
            drive(*hooks)
    with pytest.raises(ConfigError, match=r"execution\.staleness: got 1 with a hook that drives settings; need 0"):
        Runtime(small().replace(hooks=(Longer(),), staleness=1), tmp_path, Deadlines())
