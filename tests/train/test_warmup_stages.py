"""A warm-up from easy to hard."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.small import run as small
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.batch import Batch
from bough.hooks import FailureSampling
from bough.learner.learner import Learner
from bough.methods.itool import itool
from bough.rollout import Limits
from bough.store import read_metrics
from bough.train import Warmup, start
from bough.train.warmup import by_difficulty
from bough.tree import Outcome, Source, Tree
from bough.worlds.frozenlake import FrozenLake


def shown(turns: int, tokens: int = 1) -> Tree:
    nodes = [N(parent=-1, kind=PROMPT)]
    for number in range(turns):
        nodes.append(N(parent=2 * number, kind=ACTION, tokens=(1,) * tokens, source=Source.TEACHER))
        outcome = Outcome.TERMINATED if number + 1 == turns else Outcome.OPEN
        nodes.append(N(parent=2 * number + 1, kind=OBSERVATION, outcome=outcome))
    return build(*nodes)


def test_the_shortest_demonstrations_come_first() -> None:
    trees = [shown(3), shown(1, tokens=2), shown(1), shown(2), shown(5)]
    parts = by_difficulty(trees, Warmup(stages=2))
    assert parts == [[trees[2], trees[1], trees[3]], [trees[0], trees[4]]]
    assert by_difficulty(trees, Warmup()) == [trees]
    assert [len(part) for part in by_difficulty(trees[:2], Warmup(stages=3))] == [1, 1]
    with pytest.raises(ValueError, match=r"Warmup.stages: got 3 and epochs=2; need at least 1 and at most the epochs"):
        Warmup(stages=3, epochs=2)


def test_each_epoch_imitates_the_demonstrations_of_its_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[float] = []
    learn = Learner.learn

    def watched(self: Learner, batch: Batch, *rest: object, **more: object) -> dict[str, float]:
        turns.append(float(np.mean(np.diff(batch.row.numpy()))))
        return learn(self, batch, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Learner, "learn", watched)
    run = small()
    warmup = Warmup(demonstrations=12, epochs=4, learning_rate=1e-2, batch_tokens=256, stages=2)
    start(run.replace(warmup=warmup, steps=0), tmp_path, terminal=False)
    assert len(turns) == 4
    assert turns[0] == turns[1] < turns[2] == turns[3], "longer texts later"


def test_the_method_selects_what_it_fails_and_warms_up_in_stages() -> None:
    run = itool(small().world)
    assert run.method.hooks == (FailureSampling(),)
    assert run.world.warmup.stages == 3
    assert run.world.warmup.demonstrations == small().world.warmup.demonstrations


def test_demonstrations_come_from_an_easier_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    learn = Learner.learn

    def watched(self: Learner, batch: Batch, *rest: object, **more: object) -> dict[str, float]:
        turns.append(int(batch.turn.max()) + 1)
        return learn(self, batch, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Learner, "learn", watched)
    shown = Warmup(demonstrations=4, epochs=1, env=FrozenLake(size=2, min_moves=1))
    hard = small().replace(env=FrozenLake(size=4, min_moves=4), limits=Limits(turns=8), warmup=shown, steps=0)
    start(hard, tmp_path / "easier", terminal=False)
    start(hard.replace(warmup=replace(shown, env=None)), tmp_path / "own", terminal=False)
    assert turns[0] <= 2
    assert turns[1] >= 4


def test_a_second_warm_up_follows_with_its_own_demonstrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    learn = Learner.learn

    def watched(self: Learner, batch: Batch, *rest: object, **more: object) -> dict[str, float]:
        turns.append(int(batch.turn.max()) + 1)
        return learn(self, batch, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Learner, "learn", watched)
    hard = Warmup(demonstrations=5, epochs=1)
    easy = Warmup(demonstrations=4, epochs=2, env=FrozenLake(size=2, min_moves=1), then=hard)
    lake = FrozenLake(size=4, min_moves=4)
    run = small().replace(env=lake, limits=Limits(turns=8), warmup=easy, steps=1)
    result = start(run, tmp_path, terminal=False)
    assert [each <= 2 for each in turns[:3]] == [True, True, False]
    rows = read_metrics(result.metrics)
    assert [row["phase"] for row in rows] == ["warmup"] * 3 + ["rl"]


def test_nothing_follows_a_warm_up_that_imitates_nothing() -> None:
    hard = Warmup(demonstrations=5, epochs=1)
    assert list(Warmup(demonstrations=4, then=hard).parts()) == ["warmup", "warmup.then"]
    assert Warmup(then=hard).parts() == {}
    assert small().replace(warmup=Warmup(then=hard)).warmup_steps == 0


def test_a_part_of_the_warm_up_with_too_many_demonstrations_is_named(tmp_path: Path) -> None:
    many = Warmup(demonstrations=2, epochs=1, then=Warmup(demonstrations=10_000))
    with pytest.raises(ValueError, match=r"warmup.then.demonstrations: got 10000; need at most tasks.count"):
        start(small().replace(warmup=many), tmp_path, terminal=False)
    assert not list(tmp_path.iterdir()), "before the first part is trained"
