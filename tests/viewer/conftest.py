"""A trained run for the viewer."""

from pathlib import Path

import pytest

import bough

SMALL = (
    "steps=2",
    "tasks.count=40",
    "batch_tasks=3",
    "explorer.n=4",
    "warmup.demonstrations=40",
    "warmup.epochs=4",
    "evaluation.tasks.count=4",
    "rewards=[EnvReward(), InvalidAction(penalty=0.1)]",
    "evaluation.checks=[Success(), Length()]",
    "checkpointing.trees_every=1",
    "checkpointing.every=1",
)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viewer") / "runs"
    return bough.train("grpo", SMALL, on="sokoban", out=folder, name="soko", seed=3).directory
