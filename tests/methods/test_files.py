"""A method, a world, a credit rule and a reward are one new file each; no other file changes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bough
from bough.cli.app import app
from bough.store import RunDirectory, read_metrics
from bough.train import load_run

WORLD = """
from dataclasses import dataclass

from bough.engine import Sampling
from bough.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.rollout import Limits
from bough.policy import Tiny
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.tree import Outcome, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    '''Answer with the number in the observation.'''

    numbers: int = 200
    branching = Branching.COPY
    instructions = "Answer with the number."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        found = draw_instances(
            name="Copy", split=split, count=count, seed=seed, propose=lambda random: random.randrange(self.numbers),
            content=str, accept=lambda number: True,
        )
        return [instance_task(name="copy", content=str(number), data={"number": number}) for number in found]

    def start(self, task: Task) -> State:
        return State(observation=str(task.data["number"]), key=str(task.data["number"]), value=task.data["number"])

    def step(self, state: State, action: str) -> Step:
        right = action == str(state.value)
        return Step(state=state, reward=float(right), outcome=Outcome.TERMINATED, success=right)

    def plan(self, state: State) -> tuple[str, ...]:
        return (str(state.value),)


def numbers(largest: int = 200) -> World:
    '''Numbers to copy (arXiv 0000.00000). Assumes nothing.'''
    return World(
        name="numbers",
        env=Copy(numbers=largest),
        policy=Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=256),
        limits=Limits(turns=1),
        sampling=Sampling(max_tokens=4),
        warmup=Warmup(demonstrations=4, epochs=2, batch_tokens=128),
        schedule=Schedule(steps=2, batch_tasks=2),
        tasks=Tasks(split="train", count=8),
        evaluation=Evaluation(tasks=Tasks(split="test", count=2)),
    )
"""
METHOD = """
from bough.credit import rloo
from bough.train import Run, World


def leave_one_out(world: World, *, paths_squared: int = 4) -> Run:
    '''Leave-one-out (arXiv 2402.14740). Assumes several paths.'''
    return world.run(credit=rloo(), steps=paths_squared // 4)
"""
CREDIT = """
from collections.abc import Sequence
from dataclasses import dataclass

from bough.tree import Credited, Rewarded, spread_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Halved:
    '''The return minus one half.'''

    half: float = 0.5

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        return [spread_paths(each, each.returns() - self.half) for each in rewarded]
"""
REWARD = """
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Floats, Kind, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Brevity:
    '''Channel "brevity": each sampled token costs a little.'''

    per_token: float = 0.25

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        return [{"brevity": -self.per_token * np.diff(t.span) * (t.kind == Kind.ACTION)} for t in group]
"""

LISTS = """
import json
from typer.testing import CliRunner
from bough.cli.app import app
listed = [CliRunner().invoke(app, ["list", name]) for name in ("methods", "worlds", "leave_one_out")]
assert not any(each.exit_code for each in listed), [each.output for each in listed]
print(json.dumps([each.output for each in listed]))
"""
"""Prints three lists from one process, since each process would import everything again."""


def _bough(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def test_files_of_the_user_train_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_world.py").write_text(WORLD)
    Path("my_method.py").write_text(METHOD)
    Path("my_credit.py").write_text(CREDIT)
    Path("my_reward.py").write_text(REWARD)
    changes = ["credit=my_credit.py:Halved(half=0.25)", "rewards=[EnvReward, my_reward.py:Brevity()]"]
    target = ["my_method.py:leave_one_out(paths_squared=8)", "--on", "my_world.py:numbers(largest=150)"]
    output = _bough("train", *target, *changes)
    assert "report: runs/leave_one_out_numbers/report.html" in output
    directory = RunDirectory.open(Path("runs/leave_one_out_numbers"))
    run = load_run(directory)
    assert (run.world.env.numbers, run.world.schedule.steps, run.method.credit.half) == (150, 2, 0.25)
    rows = [row for row in read_metrics(directory.metrics) if row["phase"] == "rl"]
    assert len(rows) == 2
    assert all(float(row["reward/brevity"]) < 0 for row in rows)


def test_a_file_in_a_room_is_listed_and_found_by_its_name(tmp_path: Path) -> None:
    """The package with two files more and none changed: its other rooms are links. Listing takes time by the method."""
    package, copied = Path(bough.__file__).parent, tmp_path / "bough"
    copied.mkdir()
    for each in package.iterdir():
        if each.name in ("methods", "worlds"):
            others = shutil.ignore_patterns("[a-fh-z]*.py") if each.name == "methods" else None
            shutil.copytree(each, copied / each.name, ignore=others)
        else:
            (copied / each.name).symlink_to(each)
    (copied / "methods" / "leave_one_out.py").write_text(METHOD)
    (copied / "worlds" / "numbers.py").write_text(WORLD)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}

    ran = subprocess.run([sys.executable, "-c", LISTS], check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    methods, worlds, one = json.loads(ran.stdout)
    assert "leave_one_out" in methods
    assert "Leave-one-out (arXiv 2402.14740)" in methods
    assert "numbers" in worlds
    assert "paths_squared: int = 4" in one
