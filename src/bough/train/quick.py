"""Shrinks a run to seconds: fewer tasks, steps, episodes, turns and tokens."""

from collections.abc import Mapping
from functools import reduce

from bough.config import ConfigError, override
from bough.config.override import full_path
from bough.train.check import check
from bough.train.run import Run

MOST: Mapping[str, int] = {
    "steps": 2,
    "batch_tasks": 2,
    "tasks.count": 50,
    "evaluation.tasks.count": 4,
    "max_sampling_rounds": 2,
    "explorer.n": 2,
    "limits.turns": 8,
    "limits.tree_turns": 64,
    "sampling.max_tokens": 32,
    "demonstrations.count": 4,
}
"""The most of each setting in a quick run."""

WARMUP: Mapping[str, int] = {"demonstrations": 6, "epochs": 2, "stages": 2}
"""The most of each setting of a warm-up, and of those after it (`then`)."""

UNLIMITED = ("limits.tree_turns",)
"""The settings of which None is no limit."""


def quick(run: Run) -> Run:
    """A run with at most the numbers of `MOST` and `WARMUP`; smaller ones stay, and so do schedules.

    A setting that a method needs larger, such as the size of a tournament, stays too. The run learns nothing: it shows
    that the pieces work together.
    """
    while (smaller := _smaller(run)) != run:
        run = smaller
    return run


def _smaller(run: Run) -> Run:
    """The run after a pass over the settings: one may be smaller only when a later one is."""
    most = dict(MOST)
    for part in run.world.warmup.parts():
        most |= {f"{part}.{name}": number for name, number in WARMUP.items()}
    for field, number in most.items():
        now = _now(run, field)
        larger = isinstance(now, int) and not isinstance(now, bool) and now > number
        if not larger and not (now is None and field in UNLIMITED):
            continue
        try:
            smaller = override(run, [f"{field}={number}"])
            check(smaller)
        except ConfigError:
            continue
        run = smaller
    return run


def _now(run: Run, field: str) -> object:
    """The value of a field; None where there is none, such as the number of episodes of a search."""
    return reduce(_part, full_path(run, field), run)


def _part(value: object, name: str) -> object:
    return getattr(value, name, None)
