"""What the loop hands to the learner, in one run where each setting has an effect."""

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import MEASURED, busy, world

from bough.batch import Batch
from bough.curate import FilterResult
from bough.explore import Correct
from bough.hooks.hook import Hooks
from bough.learner import Learner
from bough.learner.loss_inputs import ObjectiveContext
from bough.objective import SftMix
from bough.rollout import Limits
from bough.store import RunDirectory, read_metrics, read_trees
from bough.train import Demonstrations, HeldoutResult, Tasks, Warmup, loop, resume, start
from bough.train.evaluation import measure
from bough.tree import Credited, Kind, Rewarded, Source

STEPS, WARMUP, UPDATES = 10, 4, 40
"""Updates: two epochs of two mini-batches in each step."""


@dataclass
class Busy:
    """A finished run, and what its learner and its hooks were given in each step of reinforcement."""

    directory: RunDirectory = field(init=False)
    batches: list[Batch] = field(default_factory=list)
    contexts: list[ObjectiveContext] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    hook_seeds: list[int] = field(default_factory=list)
    heldout: list[tuple[int, HeldoutResult]] = field(default_factory=list)
    """Seed and result of each evaluation."""

    def column(self, name: str) -> list[float]:
        return [float(row[name]) for row in read_metrics(self.directory.metrics) if row["phase"] == "rl"]

    def tasks(self) -> list[str]:
        """In the order in which they were drawn."""
        files = [self.directory.trees_of(WARMUP + step) for step in range(1, STEPS + 1)]
        return [each.tree.task.id for file in files for each in read_trees(file, Credited)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Busy]:
    made = Busy()
    learn, transform = Learner.learn, Hooks.transform

    def learns(self: Learner, batch: Batch, *given: Any, seed: int, **more: Any) -> dict[str, float]:
        if "context" in more:
            made.batches.append(batch)
            made.contexts.append(more["context"])
            made.seeds.append(seed)
        return learn(self, batch, *given, seed=seed, **more)

    def transforms(self: Hooks, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        made.hook_seeds.append(seed)
        return transform(self, rewarded, seed)

    async def measures(*given: Any, seed: int, **more: Any) -> HeldoutResult:
        made.heldout.append((seed, await measure(*given, seed=seed, **more)))
        return made.heldout[-1][1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop, "measure", measures)
        patched.setattr(Learner, "learn", learns)
        patched.setattr(Hooks, "transform", transforms)
        made.directory = start(busy(), tmp_path_factory.mktemp("busy"), terminal=False)
        yield made


def test_engine_and_learner_have_the_same_temperature(run: Busy) -> None:
    assert max(run.column("policy/gap")) < 1e-4


def test_the_learning_rate_falls_to_the_end_of_the_run(run: Busy) -> None:
    """A cosine over all optimizer steps; the metric is the mean of a step's four."""
    cosine = [0.003 * 0.5 * (1 + math.cos(math.pi * update / UPDATES)) for update in range(UPDATES)]
    expected = np.asarray(cosine).reshape(STEPS, -1).mean(axis=1)
    assert run.column("optimizer/learning_rate") == pytest.approx(expected.tolist())


def test_objectives_anneal_with_the_progress_of_the_run(run: Busy) -> None:
    assert [each.progress for each in run.contexts] == pytest.approx([step / STEPS for step in range(STEPS)])
    # Up to the peak .9 at .3, then down to .05; the metric is a sum over the demonstrated tokens' weights.
    mu = run.column("policy/expert_mu")
    assert mu[0] == 0
    assert mu[-1] < 0.2 < max(mu)


def test_entropies_of_earlier_steps_reach_the_objective(run: Busy) -> None:
    known = [each.mean_turn_entropy for each in run.contexts]
    assert [None if each is None else len(each) > 0 for each in known] == [False, *[True] * (STEPS - 1)]
    outside = run.column("policy/entropy_outside")
    assert outside[0] == 0, "nothing is known"
    assert min(outside[1:]) > 0.5, "the band has no width"


def test_each_pass_over_the_tasks_has_its_own_order(run: Busy) -> None:
    tasks = run.tasks()
    passes = [tasks[first : first + 6] for first in range(0, len(tasks), 6)]
    assert len(passes) == 5
    assert all(sorted(each) == sorted(passes[0]) for each in passes)
    assert len(set(map(tuple, passes))) > 1


def test_a_batch_has_some_of_the_demonstrations(run: Busy) -> None:
    shown = [batch.tree[torch.searchsorted(batch.row, batch.at[batch.expert], right=True) - 1] for batch in run.batches]
    assert [len(each.unique()) for each in shown] == [2] * STEPS
    texts = {tuple(batch.target[batch.expert].tolist()) for batch in run.batches}
    assert len(texts) > 1, "not the same ones in each step"


def test_learner_and_hooks_have_a_seed_for_each_step(run: Busy) -> None:
    assert len(set(run.seeds)) == len(set(run.hook_seeds)) == STEPS


def test_evaluations_have_one_seed_and_the_temperature_of_their_setting(run: Busy) -> None:
    seeds = [seed for seed, _ in run.heldout]
    assert len(seeds) == 2
    assert len(set(seeds)) == 1
    actions = [tree.source[tree.kind == Kind.ACTION] for _, result in run.heldout for tree in result.trees]
    assert set(np.concatenate(actions).tolist()) == {Source.GREEDY}, "its temperature is 0"


def test_a_resumed_run_ends_with_the_same_metrics_and_weights(run: Busy, tmp_path: Path) -> None:
    """From a checkpoint with entropies, moments and a reference of its own."""
    shutil.copytree(run.directory.path, tmp_path / "again")
    again = RunDirectory(path=tmp_path / "again")
    shutil.rmtree(again.final)
    newest = sorted(again.checkpoints.iterdir())[-1]
    shutil.rmtree(newest)
    resumed = resume(again.path, terminal=False)
    rows = [
        [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(each.metrics)]
        for each in (run.directory, resumed)
    ]
    assert rows[0] == rows[1]
    mine, others = ((each.final / "model.safetensors").read_bytes() for each in (run.directory, resumed))
    assert mine == others


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRound:
    """Keeps the only group once it has a tree of two rounds."""

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        full = len(credited) > 1
        return FilterResult(trees=tuple(credited) if full else (), dropped={} if full else {"first": 1})


def test_a_step_of_two_rounds_with_a_teacher(tmp_path: Path) -> None:
    run = world().run(
        explorer=Correct(n=2, max_corrected=1),
        limits=Limits(turns=12),
        objective=SftMix(mu=0.5),
        demonstrations=Demonstrations(from_trees=True),
        filters=(SecondRound(),),
        max_sampling_rounds=2,
        warmup=Warmup(),
        tasks=Tasks(split="train", count=1),
        batch_tasks=1,
        steps=1,
    )
    directory = start(run, tmp_path, terminal=False)
    one, other = (each.tree for each in read_trees(directory.trees_of(1), Credited))
    assert one.task == other.task
    assert one.token.tolist() != other.token.tolist(), "each round has a seed of its own"
    assert float(read_metrics(directory.metrics)[-1]["policy/expert_nll"]) > 0, "a teacher's turns are imitated"


def test_demonstrations_of_the_warm_up_answer_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(world().run(warmup=Warmup(demonstrations=3, epochs=1, shortcuts=0.9), steps=0), tmp_path, terminal=False)
    assert "of 3 demonstrations solve their task" in capsys.readouterr().out, "most end at once"
