"""Measures the stored trees of a run as a data set."""

import math
from collections.abc import Sequence
from pathlib import Path

from bough.env import Closable, seats_of
from bough.evaluate.baselines import oracle_return, random_return
from bough.evaluate.dataset import DatasetMeasures, measure
from bough.store import RunDirectory, stored_trees
from bough.train.run import Run
from bough.train.stored_settings import load_run
from bough.tree import Task
from bough.tree.reward_range import MOST_REWARD
from bough.varying import constant

LONGEST = 1000
"""Maximum number of actions of an episode where the run has no limit of turns."""


def measure_run(
    target: Path,
    *,
    trees: Path | None = None,
    reference: Path | None = None,
    random: float | None = None,
    best: float | None = None,
    episodes: int = 200,
    seed: int = 0,
) -> DatasetMeasures:
    """Measures the trees of a run: trajectory quality and state-action coverage, see `measure`.

    Args:
        target: The run directory.
        trees: Other trees than the run's: a file or a folder.
        reference: The reference of the coverage: a run directory, a folder or a file of trees; None for none.
        random: Mean return of random actions; None to play `episodes` of them on tasks of the trees.
        best: Mean return of the best policy; None for the oracle on the same tasks.
        episodes: Maximum number of episodes of each baseline.
        seed: Seed of the random actions.

    Raises:
        ValueError: when `random` or `best` is not finite, or its size exceeds `MOST_REWARD`.
        StoreError: when there are no trees.
        EnvFault: when the environment breaks.
    """
    for name, value in (("random", random), ("best", best)):
        if value is not None and not abs(value) <= MOST_REWARD:
            raise ValueError(f"measure: got {name}={value}; need a finite number of at most {MOST_REWARD:g}")
    directory = RunDirectory.open(target)
    found = stored_trees(trees or directory.trees)
    others = stored_trees(reference) if reference is not None else []
    if random is None or best is None:
        with directory.in_its_folder() as there:
            run = load_run(there)
            tasks = list({tree.task.id: tree.task for tree in found}.values())
            played_random, played_best = _baselines(run, tasks[:: max(1, len(tasks) // episodes)], seed)
        random = played_random if random is None else random
        best = played_best if best is None else best
    return measure(found, random_return=random, best_return=best, reference=others)


def sentences(found: DatasetMeasures) -> list[str]:
    """The measures as lines; without its baselines or its reference a measure is left out, with the reason."""
    lines = [
        f"{found.paths} paths, mean return {found.mean_return:.4g}; {found.actions} actions, {found.states} distinct "
        f"states, {found.pairs} distinct pairs of a state and an action"
    ]
    if found.unknown:
        lines.append(f"{found.unknown} actions in states without a key; their observations are compared as texts")
    if math.isnan(found.quality):
        lines.append(
            "trajectory quality: needs the mean returns of random actions and of the best policy, which differ"
        )
    else:
        about = f"random {found.random_return:.4g}, best {found.best_return:.4g}"
        lines.append(f"trajectory quality (TQ): {found.quality:.3f} ({about})")
    if found.reference_pairs:
        about = f"{found.pairs} of {found.reference_pairs} pairs of the reference"
        lines.append(f"state-action coverage (SACo): {found.coverage:.3f} ({about})")
    else:
        lines.append("state-action coverage: needs a reference data set")
    return lines


def _baselines(run: Run, tasks: Sequence[Task], seed: int) -> tuple[float, float]:
    """Mean returns of random actions and of the oracle; nan with seats, whose rewards differ."""
    env = run.world.env
    if seats_of(env):
        return math.nan, math.nan
    turns = constant(run.world.at(1.0).limits.turns) or LONGEST
    try:
        return random_return(env, tasks, turns=turns, seed=seed), oracle_return(env, tasks, turns=turns)
    finally:
        if isinstance(env, Closable):
            env.close()
