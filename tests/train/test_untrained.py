"""A batch of which no token is trained: no update, counted, and a batch without an advantage for the guard."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.small import run as small

from bough.env import State
from bough.rollout import Cursor, Rollout
from bough.store import read_metrics
from bough.train import Health, NoLearningSignal, Run, Warmup, start
from bough.worlds.frozenlake import FrozenLake


@dataclass(frozen=True, slots=True, kw_only=True)
class Banana(FrozenLake):
    """FrozenLake whose oracle is wrong on maps with few holes."""

    holes: int = 99

    def plan(self, state: State) -> tuple[str, ...] | None:
        few = "".join(state.value.rows).count("H") < self.holes  # pyright: ignore[reportAttributeAccessIssue]
        return ("banana",) if few else FrozenLake.plan(self, state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dictated:
    """The explorer writes every action itself, so no token was sampled by the policy."""

    async def __call__(self, rollout: Rollout) -> None:
        place: Cursor | object = await rollout.root()
        while isinstance(place, Cursor):
            place = await rollout.advance(place, action="right")


def dictated(**settings: object) -> Run:
    changed = {
        "explorer": Dictated(),
        "filters": (),
        "warmup": Warmup(),
        "steps": 2,
        "tasks": replace(small().world.tasks, count=3),
    }
    return small().replace(**{**changed, **settings})  # type: ignore[arg-type]


def test_no_update_is_made_and_the_groups_are_counted(tmp_path: Path) -> None:
    directory = start(dictated(), tmp_path, terminal=False)
    rows = [row for row in read_metrics(directory.metrics) if "train/success" in row]
    assert len(rows) == 2
    for row in rows:
        assert row["groups/dropped_untrained"] == row["groups/dropped"] == 3
        assert "loss/total" not in row
        assert "policy/gap" not in row


def test_the_guard_counts_it(tmp_path: Path) -> None:
    with pytest.raises(NoLearningSignal, match="2 batches in a row had no advantage"):
        start(dictated(steps=9, health=Health(dead_batches=2)), tmp_path, terminal=False)


def test_demonstrations_that_solve_no_task_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = small().replace(env=Banana(size=3, max_steps=6), warmup=Warmup(demonstrations=12, epochs=1), steps=0)
    start(run, tmp_path, terminal=False)
    assert "0 of 12 demonstrations solve their task; check `plan`" in capsys.readouterr().out
    some = run.replace(env=Banana(size=3, max_steps=6, holes=1), warmup=Warmup(demonstrations=12, epochs=1), steps=0)
    start(some, tmp_path / "some", terminal=False)
    solved = re.search(r"warmup.demonstrations: (\d+) of 12 demonstrations solve their task", capsys.readouterr().out)
    assert solved
    assert 0 < int(solved[1]) < 12
