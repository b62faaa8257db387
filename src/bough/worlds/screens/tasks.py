"""Tasks: one to four requests on a generated device."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from bough.env.env import Split
from bough.env.splits import PATIENCE
from bough.tree import Task
from bough.worlds.screens.catalogue import KINDS
from bough.worlds.screens.device import Device, Place
from bough.worlds.screens.levels import Level, is_in, templates_in
from bough.worlds.screens.part import Request, Table

TIERS: Mapping[int, tuple[range, range]] = {
    1: (range(1, 2), range(2, 5)),
    2: (range(1, 3), range(5, 9)),
    3: (range(2, 5), range(9, 16)),
}
"""By tier: the numbers of requests in a task, and the lengths of the oracle's plan."""

TRIES = 40
"""Maximum number of samples for each request of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A request and its place: an app and a part."""

    app: str
    part: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The content of a task: the seed of the device, its apps, and requests in different parts."""

    seed: int
    apps: tuple[str, ...]
    goals: tuple[Goal, ...]

    def content(self) -> str:
        """Its canonical text."""
        return json.dumps(self.data(), sort_keys=True)

    def data(self) -> dict[str, object]:
        """The data of its task."""
        goals = [[goal.app, goal.part, *goal.request] for goal in self.goals]
        return {"device": self.seed, "apps": [*self.apps], "goals": goals}


def sample_goals(device: Device, level: Level, split: Split, count: int, rng: random.Random) -> tuple[Goal, ...]:
    """Samples `count` requests of a split in different parts of a device; () where `TRIES` samples each are too few."""
    goals: dict[Place, Goal] = {}
    for _ in range(TRIES * count):
        if len(goals) == count:
            break
        app = rng.choice([*device.apps])
        template = rng.choice(templates_in(level, split, app))
        part = rng.choice([part for part in device.apps[app] if template in part.templates])
        request = part.propose(template, device.data[app, part.title], rng)
        if request and is_in(level, split, app, part.title, request):
            goals.setdefault((app, part.title), Goal(app=app, part=part.title, request=request))
    return tuple(goals.values()) if len(goals) == count else ()


def draw(
    count: int, propose: Callable[[random.Random], Instance], accept: Callable[[Instance], bool], rng: random.Random
) -> list[Instance]:
    """Samples `count` different instances; a smaller `count` gives a prefix. `propose` decides the split.

    Raises:
        ValueError: when `count` is negative, or `PATIENCE` consecutive samples give no new instance.
    """
    if count < 0:
        raise ValueError(f"Screens.tasks: got count={count}; need 0 or more")
    found: dict[str, Instance] = {}
    misses = 0
    while len(found) < count:
        instance = propose(rng)
        misses += 1
        if instance.content() not in found and accept(instance):
            found[instance.content()] = instance
            misses = 0
        if misses >= PATIENCE:
            raise ValueError(
                f"Screens.tasks: got count={count}, but after {len(found)} different tasks {PATIENCE} samples gave no "
                "new one; need a smaller count, or settings with more tasks (apps, rows), or "
                "a larger env.max_steps: tasks that take more actions are left out"
            )
    return list(found.values())


def read_instance(task: Task) -> Instance:
    """Returns the instance of a task.

    Raises:
        ValueError: when the data of the task are of another form.
    """
    seed, apps, goals = (task.data.get(name) for name in ("device", "apps", "goals"))
    listed = [_texts(goal) for goal in cast("Sequence[object]", goals)] if isinstance(goals, list | tuple) else []
    names = _texts(apps)
    whole = isinstance(seed, int) and names and listed and all(len(goal) > 2 and goal[0] in names for goal in listed)
    if not whole or not {*names} <= {*KINDS}:
        raise ValueError(
            f"Screens: task {task.id} got the data {dict(task.data)!r}; need 'device', a whole number, 'apps', names "
            f"out of {[*KINDS]}, and 'goals', lists of an app, a part, a template and its parameters"
        )
    made = tuple(Goal(app=goal[0], part=goal[1], request=goal[2:]) for goal in listed)
    return Instance(seed=cast("int", seed), apps=names, goals=made)


def target_of(device: Device, goals: Sequence[Goal]) -> dict[Place, Table]:
    """The data after all requests are fulfilled; the parts of the requests come first.

    Raises:
        ValueError: when a request does not fit the device.
    """
    target: dict[Place, Table] = {}
    for goal in goals:
        place = (goal.app, goal.part)
        try:
            part = device.part(*place)
            if goal.request[0] not in part.templates:
                raise LookupError(f"no template {goal.request[0]!r}")
            target[place] = part.fulfil(device.data[place], goal.request)
        except (LookupError, ValueError, StopIteration) as error:
            raise ValueError(
                f"Screens: got the goal {[*place, *goal.request]}, which does not fit the device ({error!r}); need one "
                "that `Screens.tasks` made with the same settings"
            ) from error
    return target | {place: table for place, table in device.data.items() if place not in target}


def prompt_of(device: Device, goals: Sequence[Goal]) -> str:
    """The requests in words."""
    texts = [f"{device.part(goal.app, goal.part).text(goal.request)} in {goal.app}" for goal in goals]
    return " then ".join(texts)


def _texts(value: object) -> tuple[str, ...]:
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return tuple(str(item) for item in items)
