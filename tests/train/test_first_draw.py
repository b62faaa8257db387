"""Before the first step: faults are retried and counted, hanging workers replaced, failed tasks excluded."""

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.small import run as small

from bough.env import EnvFault, EnvHost, InProcessHost, State, Step, Workers
from bough.rollout import Deadlines
from bough.store import read_metrics, write_tasks
from bough.train import Evaluation, Run, Tasks, Warmup, start
from bough.train.first_draw import FirstDraw, TimedHost, open_run
from bough.tree import Task
from bough.usercode import load_module
from bough.worlds.frozenlake import FrozenLake

stage = load_module(Path(__file__).parents[1] / "explore" / "stage.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaky(FrozenLake):
    """Breaks the first time that a task is started, and the first time that a task is stepped."""

    seen: Counter[str] = field(default_factory=Counter[str], init=False, compare=False)

    def start(self, task: Task) -> State:
        self._break(f"start {task.id}")
        return FrozenLake.start(self, task)

    def step(self, state: State, action: str) -> Step:
        self._break("step")
        return FrozenLake.step(self, state, action)

    def _break(self, name: str) -> None:
        self.seen[name] += 1
        if self.seen[name] == 1:
            raise OSError(f"{name} broke")


def opened(run: Run, host: EnvHost | None = None) -> FirstDraw:
    async def main() -> FirstDraw:
        timed = TimedHost(host=host or InProcessHost(env=run.world.env), deadlines=Deadlines(), deadline_s=60)
        try:
            return await open_run(run, timed)
        finally:
            await timed.close()

    return asyncio.run(main())


def staged(folder: Path, *names: str) -> Run:
    """A run on tasks with these names."""
    write_tasks(folder / "tasks.jsonl", [Task(id=name) for name in names])
    tasks = Tasks(split="train", count=len(names), file=str(folder / "tasks.jsonl"))
    return small().replace(env=stage.World(), tasks=tasks, evaluation=Evaluation(tasks=tasks))


def test_a_rare_fault_changes_nothing_and_is_counted() -> None:
    calm = opened(small())
    shaky = opened(small().replace(env=Shaky(size=3, max_steps=6)))
    assert (shaky.texts, shaky.first) == (calm.texts, calm.first)
    assert shaky.train_tasks == calm.train_tasks
    assert (calm.faults, calm.line) == (0, "")
    assert shaky.faults == 12 + 1
    assert shaky.left_out == 0
    assert shaky.line.startswith("13 faults of the environment before the first step. The last fault: Shaky.st")


def test_what_hangs_or_fails_for_good_is_left_out(tmp_path: Path) -> None:
    lines: list[str] = []
    run = staged(tmp_path, "never", "stuck", "fine").replace(batch_tasks=3, workers=2)
    first_draw = opened(run, Workers(env=run.world.env, count=2, deadline_s=1.5, notify=lines.append))
    assert first_draw.first == replace(first_draw.first, observation=".")
    assert first_draw.texts == opened(staged(tmp_path, "fine")).texts
    assert first_draw.left_out == 2
    assert first_draw.faults == 2 * 2 * 3, "each of two is tried three times, for the first state and for its texts"
    assert len(lines) == 6
    assert set(lines) == {"World.start (task stuck): no answer within 1.5 s; its worker was replaced"}


def test_a_run_ends_when_nothing_can_be_played(tmp_path: Path) -> None:
    run = staged(tmp_path, "never-0", "never-1", "fine").replace(batch_tasks=2)
    with pytest.raises(
        EnvFault, match=r"none of 2 tasks could be played, each tried 3 times.*RuntimeError: no such world"
    ):
        opened(run)


def test_heldout_tasks_have_a_seed_of_their_own() -> None:
    """Runs of several seeds are measured on the same tasks, and train on different ones."""
    run = small()
    zero, five = opened(run), opened(run.replace(seed=5))
    assert zero.heldout_tasks == five.heldout_tasks
    assert zero.train_tasks != five.train_tasks
    others = opened(run.replace(evaluation=replace(run.world.evaluation, seed=5)))
    assert others.heldout_tasks != zero.heldout_tasks
    assert others.train_tasks == zero.train_tasks


@pytest.mark.parametrize("left", [1, 2, 9])
def test_the_oracle_begins_tasks(left: int) -> None:
    env, whole = FrozenLake(size=3, max_steps=6), opened(small())
    late = opened(small().replace(tasks=Tasks(split="train", count=12, actions_left=left)))
    assert late.heldout_tasks == whole.heldout_tasks
    for task, own in zip(late.train_tasks, whole.train_tasks, strict=True):
        state, plan = env.start(own), env.plan(env.start(own)) or ()
        assert task == own.after(plan[:-left])
        for action in task.start:
            state = env.step(state, action).state
        assert len(env.plan(state) or ()) == min(left, len(plan))


def test_a_run_in_an_environment_that_breaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It demonstrates, trains and evaluates as in one that never does."""
    monkeypatch.setattr(sys.modules["bough.train.start"], "LARGE_CONFIG_BYTES", 1)
    run = small().replace(
        env=Shaky(size=3, max_steps=6),
        policy=replace(small().world.policy, context_tokens=80),
        warmup=Warmup(demonstrations=12, epochs=1),
        steps=1,
        evaluation=Evaluation(tasks=Tasks(split="test", count=2), every=100),
    )
    rows = read_metrics(start(run, tmp_path, terminal=False).metrics)
    said = capsys.readouterr().out
    assert "config.json has 0.0 MiB: it holds all fields of all pieces. Keep" in said
    assert "13 faults of the environment before the first step" in said
    assert rows[0]["env/faults"] == 13
    assert all("env/faults" not in row for row in rows[1:])
    cut = float(rows[-1]["paths/truncated_context"])
    assert cut > 0
    assert f"cut by the context {cut:.0f}" in said
    assert said.count("paths were truncated: the model reads 80 tokens") == 1
    calm = read_metrics(start(run.replace(name="calm", env=FrozenLake(size=3, max_steps=6)), tmp_path).metrics)
    same = ("loss/total", "train/success", "heldout/success", "paths/truncated_context", "policy/entropy")
    assert [[row.get(name) for name in same] for row in rows] == [[row.get(name) for name in same] for row in calm]
