"""Checks the tasks of an environment, and that its splits share none."""

import json
from collections.abc import Mapping
from itertools import combinations

from bough.env import EnvFault, Split
from bough.evaluate.envs.comparison import as_text, shown, state_record
from bough.evaluate.envs.report import EnvCheck, failed, not_applicable, passed
from bough.evaluate.envs.timed import TimedEnv, within
from bough.evaluate.envs.trial import SPLITS, Trial
from bough.tree import Task

NAMES = ("id", "seed", "split", "index")
"""Keys of `Task.data` that name a task, and are no content."""


def draw_most(env: TimedEnv, split: Split, count: int, seed: int) -> tuple[Task, ...]:
    """`count` tasks of a split, or as many as it has: the largest number found by bisection.

    Raises:
        EnvFault: when `tasks` raises anything but ValueError.
    """
    low, high, best = 0, count + 1, tuple[Task, ...]()
    middle = count
    while low + 1 < high:
        try:
            best = env.tasks(split, middle, seed)
            low = middle
        except ValueError:
            high = middle
        middle = (low + high) // 2
    return best


def draw_splits(env: TimedEnv, count: int, seed: int) -> dict[Split, tuple[Task, ...]]:
    """The tasks of each split that has any; the error of an environment without tasks is its own.

    Raises:
        EnvFault: when `tasks` raises, or no split has a task.
    """
    found: dict[Split, tuple[Task, ...]] = {split: draw_most(env, split, count, seed) for split in SPLITS}
    if not any(found.values()):
        try:
            env.tasks("train", 1, seed)
        except ValueError as error:
            raise EnvFault(f"tasks('train', 1, {seed}) raised {error}") from error
    return {split: tasks for split, tasks in found.items() if tasks}


def check_tasks(env: TimedEnv, tasks: Mapping[Split, tuple[Task, ...]], seed: int) -> EnvCheck:
    """`tasks` returns the same tasks twice, and a smaller count is a prefix.

    Raises:
        EnvFault: when `tasks` raises.
    """
    figure = ", ".join(f"{len(own)} {split}" for split, own in tasks.items())
    for split, own in tasks.items():
        for count in sorted({len(own), len(own) // 2, 1}):
            try:
                again = env.tasks(split, count, seed)
            except ValueError as error:
                raise EnvFault(f"tasks({split!r}, {count}, {seed}) raised {error}, and {len(own)} did not") from error
            if again != own[:count]:
                at = next(place for place, task in enumerate(again) if task != own[place])
                return failed(
                    figure,
                    got=f"tasks({split!r}, {count}, {seed})[{at}] is {_shown(again[at])}, and {_shown(own[at])} in a "
                    f"call for {len(own)}",
                    need="the same tasks for the same split and seed, and a prefix for a smaller count",
                    do="draw from random.Random(seed) alone, one task after the other",
                )
    return passed(figure)


def check_splits(trial: Trial) -> EnvCheck:
    """No task of one split occurs in another, by id and by content."""
    sizes = trial.sizes
    wide = {split: draw_most(trial.env, split, max(sizes.tasks, 200), sizes.seed) for split in trial.tasks}
    figure = ", ".join(f"{len(own)} {split}" for split, own in wide.items())
    if len(wide) < 2:
        return not_applicable(f"one split with tasks: {figure}")
    names = {split: {task.id for task in own} for split, own in wide.items()}
    for one, two in combinations(wide, 2):
        if shared := sorted(names[one] & names[two]):
            return _leak(figure, f"the id {shared[0]!r} and {len(shared) - 1} others in {one} and in {two}")
    for one, two in combinations(wide, 2):
        contents = {_content(task): task for task in wide[one]}
        pairs = [(contents[_content(task)], task) for task in wide[two] if _content(task) in contents]
        for first, second in within(sizes.seconds, pairs):
            if _starts_equal(trial.env, first, second):
                data = shown(_data(first))
                return _leak(figure, f"{first.id!r} of {one} and {second.id!r} of {two} with the same data, {data}")
    return passed(figure)


def _leak(figure: str, got: str) -> EnvCheck:
    return failed(
        figure,
        got=got,
        need="splits that share no task, whatever the seed",
        do="derive the split from the content, by bough.env.splits.split_of",
    )


def _shown(task: Task) -> str:
    return f"{task.id!r} with the data {shown(_data(task))}"


def _data(task: Task) -> str:
    return json.dumps(dict(task.data), sort_keys=True, default=str)


def _content(task: Task) -> str:
    """The data of a task without its names; with them where they are all there is: a seed alone is content."""
    left = {name: value for name, value in task.data.items() if name not in NAMES}
    return json.dumps(left or dict(task.data), sort_keys=True)


def _starts_equal(env: TimedEnv, first: Task, second: Task) -> bool:
    """Whether two tasks with equal data start alike; where only a seed makes the instance, they do not."""
    if (first.seed, _data(first)) == (second.seed, _data(second)):
        return True
    one, two = (state_record(env.start(task)) for task in (first, second))
    return as_text(one) == as_text(two)
