"""Runs that end before their last step: solved, dead, or stopped by a fault; and what `resume` makes of each."""

import asyncio
import json
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.engines import Front
from tests.small import MEASURED
from tests.small import run as small
from torch import Tensor

from bough.config import ConfigError
from bough.engine import Completion, Engine, EngineFault, Local, Request, Sampling
from bough.engine.model import ServedPolicy
from bough.env import State, Step
from bough.hooks import BatchHook, HookSetup, TaskRewriter
from bough.learner import Diverged
from bough.objective import Loss, LossInputs, PpoClip
from bough.rollout import DeadlineExceeded
from bough.schedule import LinearSchedule
from bough.store import Checkpoints, RunDirectory, StoreError, read_metrics, run_status
from bough.train import Checkpointing, Evaluation, Health, NoLearningSignal, Run, Tasks, read_heldout, resume, start
from bough.tree import Outcome, Rewarded, Task
from bough.worlds.frozenlake import FrozenLake

EPOCHS, STEPS = 2, 4
EVALUATED_AT = 0.5
"""Temperature of held-out episodes here."""

SOLVED = "ended after step 4 of 6: every path of the last 2 batches succeeded, so nothing is left to learn"

fault: dict[str, int] = {}
"""By kind: from which version of the policy on something is broken."""


@pytest.fixture(autouse=True)
def healthy() -> Iterator[None]:
    fault.clear()
    yield
    fault.clear()


def interrupt_once(moment: str, version: int) -> None:
    """SIGTERM, as of a scheduler."""
    if version >= fault.get(moment, 1000):
        del fault[moment]
        signal.raise_signal(signal.SIGTERM)


class Faulty(Front):
    """An engine that breaks in one way."""

    def _is(self, kind: str) -> bool:
        return self.policy_version >= fault.get(kind, 1000)

    async def generate(self, request: Request) -> Completion:
        interrupt_once(
            "evaluation" if request.sampling.temperature == EVALUATED_AT else "rollouts", self.policy_version
        )
        if self._is("broken"):
            raise EngineFault("the cable is out")
        if self._is("silent"):
            await asyncio.sleep(1000)
        completion = await super().generate(request)
        assert completion.logprobs is not None
        shift = 1.0 if self._is("skewed") else 0.0
        return replace(completion, logprobs=tuple(each - shift for each in completion.logprobs))

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        fault["loaded"] = policy_version
        scale = 1.2 if policy_version >= fault.get("unsynced", 1000) else 1.0
        self.engine.load_weights({name: weight * scale for name, weight in weights.items()}, policy_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyLocal:
    """The engine's recipe."""

    def build(self, policy: ServedPolicy) -> Engine:
        return Faulty(Local(slots=32).build(policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploding(PpoClip):
    """A loss that is nan from its second value on while `fault` is set: the first is that of the dry pass."""

    def __call__(self, columns: LossInputs) -> Loss:
        loss = PpoClip.__call__(self, columns)
        interrupt_once("update", fault.get("loaded", 0))
        if "nan" not in fault:
            return loss
        fault["nan"] += 1
        return replace(loss, value=loss.value * float("nan")) if fault["nan"] > 1 else loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Easy(FrozenLake):
    """Any first action reaches the goal."""

    def step(self, state: State, action: str) -> Step:
        return replace(FrozenLake.step(self, state, action), reward=1.0, success=True, outcome=Outcome.TERMINATED)


def brief(**changes: Any) -> Run:
    """A few steps with an update each, and checkpoints at the first and the last alone."""
    warmup = replace(small().world.warmup, epochs=EPOCHS)
    settings = {
        "warmup": warmup,
        "filters": (),
        "steps": STEPS,
        "engine": FaultyLocal(),
        "objective": Exploding(),
        "evaluation": Evaluation(tasks=Tasks(split="test", count=3), every=100),
        "checkpointing": Checkpointing(every=100, trees_every=100),
        "health": Health(dead_batches=100),
    }
    return small().replace(**(settings | changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """An engine's recipe that ends the run instead."""

    def build(self, policy: ServedPolicy) -> Engine:
        del policy
        raise SystemExit if "exit" in fault else KeyboardInterrupt


def weights(directory: RunDirectory) -> dict[str, Any]:
    return load_file(directory.final / "model.safetensors")


def equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def rows(directory: RunDirectory) -> list[dict[str, object]]:
    return [
        {name: value for name, value in row.items() if not name.startswith(MEASURED)}
        for row in read_metrics(directory.metrics)
    ]


def trees(directory: RunDirectory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.trees.iterdir()}


def newest(directory: RunDirectory) -> int:
    return Checkpoints(directory=directory.checkpoints).steps()[-1]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(brief(name="undisturbed"), tmp_path_factory.mktemp("runs"), terminal=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsBatches:
    """A hook whose tasks and metrics depend on how many batches were drawn."""

    def build(self, setup: HookSetup) -> "CountsBatchesState":
        return CountsBatchesState(self, setup)


@dataclass(slots=True, kw_only=True)
class CountsBatchesData:
    drawn: int = 0


class CountsBatchesState(BatchHook[CountsBatches], TaskRewriter):
    def __init__(self, settings: CountsBatches, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data = CountsBatchesData()

    async def rewrite(self, tasks: Sequence[Task], _teacher: object, _seed: int) -> list[Task]:
        self.data.drawn += 1
        return list(tasks)

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        return list(rewarded)

    def observe(self) -> Mapping[str, float]:
        return {"counts/drawn": float(self.data.drawn)}


@pytest.mark.parametrize("hooks", [(), (CountsBatches(),)], ids=["", "hook"])
def test_sigterm_leaves_a_checkpoint_of_the_last_step(hooks: tuple[CountsBatches, ...], tmp_path: Path) -> None:
    """At once while trees grow and in an evaluation, after the step in its update; hooks count its tasks once.

    The evaluation is that of the last step, whose trees are due.
    """
    evaluation = Evaluation(tasks=Tasks(split="test", count=3), every=2, temperature=EVALUATED_AT)
    run = brief(hooks=hooks, evaluation=evaluation, checkpointing=Checkpointing(every=100, trees_every=4))
    whole = start(run.replace(name="whole"), tmp_path, terminal=False)
    directory, left = None, list[int]()
    for moment, version in (("rollouts", 2), ("update", 4), ("evaluation", 5)):
        fault[moment] = version
        with pytest.raises(KeyboardInterrupt, match="bough resume"):
            start(run, tmp_path, terminal=False) if directory is None else resume(directory.path, terminal=False)
        directory = RunDirectory.open(tmp_path / "small")
        left.append(newest(directory) - EPOCHS)
    assert directory is not None
    assert left == [1, 3, 4]
    resume(directory.path, terminal=False)
    assert rows(directory) == rows(whole)
    assert equal(weights(directory), weights(whole))
    assert trees(directory) == trees(whole)
    assert {name.partition(".")[0] for name in trees(whole)} == {"step_000004", "step_000006"}


def test_a_run_that_solves_everything_is_a_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = brief(env=Easy(size=3, max_steps=6), health=Health(dead_batches=2))
    directory = start(run, tmp_path, terminal=False)
    assert SOLVED in capsys.readouterr().out
    assert SOLVED in directory.report.read_text()
    assert (run_status(directory.path).state, run_status(directory.path).why[: len(SOLVED)]) == ("done", SOLVED)
    assert newest(directory) == EPOCHS + 2
    assert {step: set(result.values()) for step, result in read_heldout(directory).items()} == {2: {True}, 4: {True}}
    assert [row["step"] for row in rows(directory)] == [1, 2, 3, 4]
    before, final = rows(directory), weights(directory)
    resume(directory.path, terminal=False)
    assert SOLVED in capsys.readouterr().out
    assert rows(directory) == before
    assert equal(weights(directory), final)
    resume(directory.path, ["health.dead_batches=9"], terminal=False)
    out = capsys.readouterr().out
    assert "changed: health.dead_batches=9" in out
    assert "ended after" not in out
    assert newest(directory) == EPOCHS + STEPS


def test_a_dead_run_leaves_a_policy_and_goes_on_when_its_guard_is_raised(tmp_path: Path) -> None:
    dead = brief(rewards=(), health=Health(dead_batches=2))
    for attempt in (lambda: start(dead, tmp_path, terminal=False), lambda: resume(tmp_path / "small", terminal=False)):
        with pytest.raises(NoLearningSignal, match="2 batches in a row had no advantage"):
            attempt()
    directory = RunDirectory.open(tmp_path / "small")
    assert newest(directory) == EPOCHS + 2
    assert sorted(read_heldout(directory)) == [EPOCHS, EPOCHS + 2], "the last policy is evaluated"
    assert weights(directory)
    assert "by a health check: 2 batches in a row" in directory.report.read_text()
    assert run_status(directory.path).state == "stopped"
    resume(directory.path, ["health.dead_batches=9"], terminal=False)
    whole = start(brief(rewards=(), name="whole"), tmp_path, terminal=False)
    known = set(rows(whole)[0]) | set(rows(whole)[-2])
    assert [{name: row.get(name) for name in known} for row in rows(directory)] == [
        {name: row.get(name) for name in known} for row in rows(whole)
    ]
    assert equal(weights(directory), weights(whole))


def test_a_run_whose_actions_are_cut_off_stops_and_goes_on_where_that_is_normal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = brief(sampling=Sampling(max_tokens=1), health=Health(cut_batches=2))
    with pytest.raises(NoLearningSignal, match="in 2 batches in a row 50% of the actions or more were cut off"):
        start(cut, tmp_path, terminal=False)
    assert "the run stops after 2 such batches in a row" in capsys.readouterr().out
    assert newest(RunDirectory.open(tmp_path / "small")) == EPOCHS + 2
    with pytest.raises(NoLearningSignal, match="in 2 batches in a row"):
        resume(tmp_path / "small", terminal=False)
    assert newest(resume(tmp_path / "small", ["health.cut_batches=0"], terminal=False)) == EPOCHS + STEPS


@pytest.mark.parametrize("lost", ["a row", "the file"])
def test_lost_rows_of_metrics_are_reported(
    lost: str, undisturbed: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(undisturbed.path, tmp_path / "run")
    directory = RunDirectory.open(tmp_path / "run")
    lines = directory.metrics.read_text().splitlines(keepends=True)
    directory.metrics.write_text("".join(lines[:3] + lines[4:] if lost == "a row" else []))
    resume(directory.path, [f"steps={STEPS + 1}"], terminal=False)
    steps = "steps 4" if lost == "a row" else "steps 1 to 6"
    assert f"metrics.jsonl has no rows of {steps}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "stopped_at", "error"),
    [
        ("broken", 1, "none of 36 paths came to a regular end.*The last fault: the cable is out"),
        ("silent", 1, "waited 4 s for completion"),
        ("unsynced", 1, "after a weight sync a log-probability of the engine differs"),
    ],
)
def test_a_fault_between_two_updates(
    kind: str, stopped_at: int, error: str, undisturbed: RunDirectory, tmp_path: Path
) -> None:
    """The engine breaks with the weights of step 1: it has a checkpoint, and the run goes on as if undisturbed."""
    fault[kind] = 2
    run = brief()
    run = run.replace(limits=replace(run.world.limits, engine_deadline_s=4.0))
    with pytest.raises((NoLearningSignal, DeadlineExceeded), match=error):
        start(run, tmp_path, terminal=False)
    directory = RunDirectory.open(tmp_path / "small")
    assert newest(directory) == EPOCHS + stopped_at
    assert rows(directory)[-1]["step"] == EPOCHS + stopped_at
    assert weights(directory).keys() == weights(undisturbed).keys()
    fault.clear()
    resume(directory.path, ["limits.engine_deadline_s=600"], terminal=False)
    assert equal(weights(directory), weights(undisturbed))
    if kind != "unsynced":
        assert rows(directory) == rows(undisturbed)
    assert read_heldout(directory) == read_heldout(undisturbed)


def test_an_evaluation_that_hangs_is_made_when_the_run_goes_on(undisturbed: RunDirectory, tmp_path: Path) -> None:
    fault["silent"] = 2 * STEPS
    run = brief()
    with pytest.raises(DeadlineExceeded):
        start(run.replace(limits=replace(run.world.limits, engine_deadline_s=4.0)), tmp_path, terminal=False)
    directory = RunDirectory.open(tmp_path / "small")
    assert newest(directory) == EPOCHS + STEPS
    assert sorted(read_heldout(directory)) == [EPOCHS]
    fault.clear()
    resume(directory.path, terminal=False)
    assert rows(directory) == rows(undisturbed)
    assert read_heldout(directory) == read_heldout(undisturbed)


@pytest.mark.parametrize("staleness", [0, 1])
@pytest.mark.parametrize(
    ("kind", "error", "match"),
    [("skewed", NoLearningSignal, r"differ by 1 nats on average"), ("nan", Diverged, "got a loss of nan")],
)
def test_a_fault_in_an_update(
    kind: str, error: type[Exception], match: str, staleness: int, tmp_path: Path, undisturbed: RunDirectory
) -> None:
    """The step of the update counts, and the next one follows it."""
    fault[kind], checkpointing = 0, Checkpointing(every=100, trees_every=1)
    with pytest.raises(error, match=match):
        start(brief(staleness=staleness, checkpointing=checkpointing), tmp_path, terminal=False)
    directory = RunDirectory.open(tmp_path / "small")
    assert newest(directory) == EPOCHS + 1
    assert directory.trees_of(EPOCHS + 1).is_file()
    assert ("loss/total" in rows(directory)[-1]) == (kind == "skewed")
    checkpoint = Checkpoints(directory=directory.checkpoints).latest().checkpoint
    assert checkpoint is not None
    assert all(bool(weight.isfinite().all()) for weight in checkpoint.tensors("policy").values())
    fault.clear()
    resume(directory.path, terminal=False)
    assert [row["step"] for row in rows(directory)] == [row["step"] for row in rows(undisturbed)]
    assert sorted(read_heldout(directory)) == [EPOCHS, EPOCHS + STEPS]


@pytest.mark.parametrize("saving", [1, 100])
def test_trees_that_all_failed_ahead_of_their_step_are_grown_again(saving: int, tmp_path: Path) -> None:
    fault["broken"] = 2
    run = brief(staleness=1, checkpointing=Checkpointing(every=saving, trees_every=100))
    with pytest.raises(NoLearningSignal, match="the cable is out"):
        start(run, tmp_path, terminal=False)
    fault.clear()
    directory = resume(tmp_path / "small", terminal=False)
    assert [row["step"] for row in rows(directory)] == list(range(1, EPOCHS + STEPS + 1))


def test_weights_that_are_not_finite_are_never_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = brief()
    run = run.replace(optimizer=replace(run.world.optimizer, learning_rate=1e39, minibatches=1))
    with pytest.raises(Diverged, match="update 0: got weights that are not finite after it"):
        start(run, tmp_path, terminal=False)
    directory = RunDirectory.open(tmp_path / "small")
    assert newest(directory) == EPOCHS
    assert f"stopped after step {EPOCHS} of {EPOCHS + STEPS} (warm-up); its checkpoint and" in capsys.readouterr().out
    assert all(np.isfinite(weight).all() for weight in weights(directory).values())


def test_more_steps(tmp_path: Path) -> None:
    run = brief(
        steps=2, optimizer=replace(small().world.optimizer, schedule=LinearSchedule(start=1.0, end=0.0), minibatches=1)
    )
    directory = start(run, tmp_path, terminal=False)
    rate = run.world.optimizer.learning_rate
    assert [row["optimizer/learning_rate"] for row in rows(directory)[EPOCHS:]] == [rate, rate / 2]
    resume(directory.path, ["steps=4", "checkpointing.every=3"], terminal=False)
    config = json.loads(directory.config.read_text())
    assert (config["world"]["schedule"]["steps"], config["checkpointing"]["every"]) == (4, 3)
    resume(directory.path, terminal=False)
    rates = [row["optimizer/learning_rate"] for row in rows(directory)[EPOCHS:]]
    assert rates == pytest.approx([rate, rate / 2, rate / 2, rate / 4])
    assert sorted(read_heldout(directory)) == [EPOCHS, EPOCHS + 2, EPOCHS + 4]
    before = directory.config.read_bytes()
    with pytest.raises(ConfigError, match="steps: got steps=3; 4 follow the warm-up already; need 4 or more"):
        resume(directory.path, ["steps=3"], terminal=False)
    assert directory.config.read_bytes() == before


def test_a_finished_run_is_not_built_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = start(brief(steps=1), tmp_path, terminal=False)
    capsys.readouterr()
    with monkeypatch.context() as patched:
        patched.setattr("bough.train.runtime.Runtime.__init__", None)
        assert resume(directory.path, ["health.dead_batches=9"], terminal=False).report == directory.report
    out = capsys.readouterr().out
    assert out == (
        f"small: {EPOCHS + 1} steps, the warm-up's {EPOCHS} epochs first\nchanged: health.dead_batches=9\n"
        "already finished; add steps=N to continue\n"
    )
    final = weights(directory)
    shutil.rmtree(directory.final)
    resume(directory.path, terminal=False)
    assert equal(weights(directory), final), "a run without its policy is not finished"


@pytest.mark.parametrize("change", ["optimizer.learning_rate=1", "world.limits.turns=3", "evaluation.every=2"])
def test_changes_that_make_another_run(change: str, undisturbed: RunDirectory) -> None:
    before = undisturbed.config.read_bytes()
    field = change.partition("=")[0]
    with pytest.raises(ConfigError, match=rf"^{field}: got a change of a field .* need one of steps, stop_tokens, "):
        resume(undisturbed.path, ["steps=9", change], terminal=False)
    assert undisturbed.config.read_bytes() == before


def test_a_run_without_a_whole_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = start(brief(steps=1), tmp_path, terminal=False)
    final, metrics = weights(directory), directory.metrics.read_bytes()
    for step in (2, 3):
        (directory.checkpoints / f"step_00000{step}" / "state.json").write_text("{}")
    with pytest.raises(
        StoreError, match=r"(?s)no checkpoint that is whole.*step_000003: state.json has.*step_000002: "
    ):
        resume(directory.path, terminal=False)
    assert directory.metrics.read_bytes() == metrics
    for step in (2, 3):
        (directory.checkpoints / f"step_00000{step}").rename(tmp_path / f"moved{step}")
    capsys.readouterr()
    resume(directory.path, terminal=False)
    assert "the run has no checkpoint yet, and begins at its first step" in capsys.readouterr().out
    assert equal(weights(directory), final)


def test_a_start_that_fails_frees_its_name_and_one_that_is_interrupted_can_go_on(tmp_path: Path) -> None:
    run = brief(engine=Stops(), name="short", steps=1)
    fault["exit"] = 1
    with pytest.raises(SystemExit):
        start(run, tmp_path, terminal=False)
    assert not (tmp_path / "short").exists()
    fault.clear()
    with pytest.raises(KeyboardInterrupt, match=f"go on with `bough resume {tmp_path / 'short'}`"):
        start(run, tmp_path, terminal=False)
    with pytest.raises(StoreError, match=f"without a checkpoint; .*start it again with `bough resume {tmp_path}"):
        start(run, tmp_path, terminal=False)
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "short", terminal=False)


def test_a_limit_on_cost_ends_the_run_and_resume_goes_on_to_a_higher_one(
    undisturbed: RunDirectory, tmp_path: Path
) -> None:
    tokens, actions = (costs(undisturbed, f"speed/{name}") for name in ("sampled_tokens", "actions"))
    limits = {"stop_tokens": sum(tokens[:2]), "stop_actions": sum(actions[:2]) - 1, "stop_seconds": 1e-9}
    for (name, limit), steps in zip(limits.items(), (2, 2, 1), strict=True):
        directory = start(brief(name=name, **{name: limit}), tmp_path)
        assert costs(directory, "speed/sampled_tokens") == tokens[:steps]
        assert max(read_heldout(directory)) == EPOCHS + steps
        report = directory.report.read_text()
        assert f"ended after step {EPOCHS + steps} of {EPOCHS + STEPS}: it has spent" in report
        assert f"schedule.{name}=" in report
    again = resume(tmp_path / "stop_tokens", [f"stop_tokens={sum(tokens[:3])}"])
    assert costs(again, "speed/sampled_tokens") == tokens[:3]
    resume(again.path, ["stop_tokens=none"])
    assert equal(weights(undisturbed), weights(again))


def costs(directory: RunDirectory, name: str) -> list[int]:
    """A metric of each step of reinforcement."""
    return [int(float(row[name])) for row in read_metrics(directory.metrics) if row["phase"] == "rl"]
