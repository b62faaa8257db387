"""Run directories with given results, as a run would have written them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.small import run as small

from bough.config import dump
from bough.store import Metrics, RunDirectory, write_json
from bough.store.heldout import heldout_file
from bough.train import Run

BEFORE = small().warmup_steps
"""Steps before the first one of reinforcement."""


def stored_run(
    path: Path,
    values: Mapping[int, Mapping[str, float]],
    *,
    seed: int = 0,
    tokens: Sequence[int] = (),
    run: Run | None = None,
    graded: bool = False,
    success: float = 0.5,
) -> Path:
    """A run with results of held-out tasks by step of reinforcement, and sampled tokens of each step.

    Every step takes a second and has ten actions.
    """
    run = (run or small()).replace(seed=seed, name=path.name)
    directory = RunDirectory.create(path)
    directory.write_config(dump(run))
    metrics = Metrics(directory.metrics)
    metrics.write(BEFORE, {"phase": "start"})
    for number, count in enumerate(tokens, start=1):
        row = {"speed/sampled_tokens": count, "speed/actions": 10, "time/step_s": 1.0, "train/success": success}
        metrics.write(BEFORE + number, {"phase": "rl", **row})
    for step, tasks in values.items():
        file = heldout_file(directory, BEFORE + step)
        file.parent.mkdir(exist_ok=True)
        solved = {task: value >= 0.5 for task, value in tasks.items()}
        write_json(file, {"step": BEFORE + step, "tasks": solved, "rewards": dict(tasks), "graded": graded})
    directory.final.mkdir()
    return path
