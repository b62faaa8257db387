"""A round of self-training that stops in the middle goes on without losing a finished tree, and ends the same."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from safetensors.numpy import load_file
from tests.small import MEASURED
from tests.small import run as small

from bough.credit import Filtered
from bough.engine import Local
from bough.learner import Optimizer
from bough.needs import FORKS, Need
from bough.objective import Imitation
from bough.rollout import Limits, Rollout
from bough.searches.mcts import mcts
from bough.train import Checkpointing, Run, resume, start


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A search that breaks after so many trees, once."""

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})
    grown: ClassVar[list[str]] = []
    fuse: ClassVar[list[int]] = []

    async def __call__(self, rollout: Rollout) -> None:
        await mcts(width=2)(rollout)
        if rollout.limits.turns < rounds().world.limits.turns:
            return  # The dry pass, which every start and resume makes.
        if self.fuse and len(self.grown) >= self.fuse[0]:
            raise RuntimeError("the power went")
        self.grown.append(rollout.builder.task.id)


def rounds() -> Run:
    return small().replace(
        name="rounds",
        explorer=Fused(),
        limits=Limits(turns=4, tree_turns=12),
        engine=Local(slots=32, deterministic=True),
        credit=Filtered(answer=True),
        objective=Imitation(),
        filters=(),
        optimizer=Optimizer(learning_rate=1e-3, epochs=2, minibatches=2),
        reference="step",
        steps=2,
        batch_tasks=5,
        checkpointing=Checkpointing(every=2, as_grown=True),
    )


def test_a_round_that_stops_in_the_middle_loses_no_tree(tmp_path: Path) -> None:
    Fused.grown.clear()
    whole = start(replace(rounds(), name="whole"), tmp_path, terminal=False)
    assert len(Fused.grown) == 10, "two rounds of five trees"
    assert not whole.growing.exists()
    Fused.grown.clear()
    Fused.fuse.append(3)
    with pytest.raises(RuntimeError, match="the power went"):
        start(rounds(), tmp_path, terminal=False)
    stopped = tmp_path / "rounds"
    kept = len(list(stopped.glob("growing/*/*.safetensors")))
    assert kept == len(Fused.grown) == 3
    Fused.fuse.clear()
    resumed = resume(stopped, terminal=False)
    assert len(Fused.grown) == 10, "nothing that was finished is grown again"
    assert not resumed.growing.exists()
    weights = [load_file(run.final / "model.safetensors") for run in (whole, resumed)]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    rows = [[json.loads(line) for line in run.metrics.read_text().splitlines()] for run in (whole, resumed)]
    assert all(0 <= row["train/answers"] <= 1 for row in rows[0] if row["phase"] == "rl")
    for one, other in zip(*rows, strict=True):
        for name, value in one.items():
            assert name.startswith(MEASURED) or other[name] == value, name
