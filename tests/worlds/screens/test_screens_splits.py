"""Splits of `Screens` at each level, its templates, and its shortest plans."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.env import Split, State
from bough.tree import Outcome, Task
from bough.worlds.screens import Screens
from bough.worlds.screens.catalogue import KINDS, templates_of
from bough.worlds.screens.levels import Level, kinds_of, templates_in

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
LEVELS: tuple[Level, ...] = ("instance", "template", "app")


def contents(level: Level, tasks: list[Task]) -> set[tuple[str, ...]]:
    """What no two splits may share at a level: requests, templates of an app, installed apps."""
    goals = [tuple(goal) for task in tasks for goal in task.data["goals"]]  # type: ignore[attr-defined]
    if level == "instance":
        return {*goals}
    if level == "template":
        return {(goal[0], goal[2]) for goal in goals}
    return {(app,) for task in tasks for app in task.data["apps"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tier", [1, 2, 3])
@settings(max_examples=3)
@given(seeds=st.lists(st.integers(0, 10**6), min_size=3, max_size=3))
def test_nothing_crosses_at_its_level(level: Level, tier: int, seeds: list[int]) -> None:
    env = Screens(level=level, tier=tier, max_steps=20)
    drawn = [env.tasks(split, 12, seed) for split, seed in zip(SPLITS, seeds, strict=True)]
    held = [contents(level, tasks) for tasks in drawn]
    assert all(held)
    assert not held[0] & held[1]
    assert not held[0] & held[2]
    assert not held[1] & held[2]
    ids = [{task.id for task in tasks} for tasks in drawn]
    assert not ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2]


def test_lower_levels_share_what_higher_levels_separate() -> None:
    train, test = (Screens().tasks(split, 150, 0) for split in ("train", "test"))
    assert contents("template", train) & contents("template", test)
    assert contents("app", train) & contents("app", test)
    train, test = (Screens(level="template").tasks(split, 150, 0) for split in ("train", "test"))
    assert contents("app", train) & contents("app", test)


def test_every_level_has_apps_and_templates_in_every_split() -> None:
    for level in LEVELS:
        for split in SPLITS:
            assert len(kinds_of(level, split)) >= 3
            for kind in kinds_of(level, split):
                assert templates_in(level, split, kind)
    for kind in KINDS:
        apart = [templates_in("template", split, kind) for split in SPLITS]
        assert sorted(sum(apart, ())) == sorted(templates_of(kind))
    # Were these to change, runs could train on what earlier runs tested on.
    assert kinds_of("app", "test") == ("contacts", "maps", "camera")
    assert kinds_of("app", "dev") == ("notes", "food", "settings")


def test_the_number_of_apps_and_templates() -> None:
    assert len(KINDS) == 15
    assert len({(kind, template) for kind in KINDS for template in templates_of(kind)}) == 78


def test_tasks_follow_from_split_count_and_seed() -> None:
    env = Screens(tier=2)
    for split in SPLITS:
        tasks = env.tasks(split, 8, 1)
        assert tasks == env.tasks(split, 8, 1)
        assert tasks[:3] == env.tasks(split, 3, 1)
        assert {task.id for task in tasks} != {task.id for task in env.tasks(split, 8, 2)}
    with pytest.raises(ValueError, match=r"Screens.tasks: got count=-1; need 0 or more"):
        env.tasks("train", -1, 0)


def test_a_split_with_too_few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan has a single action."""
    monkeypatch.setattr("bough.worlds.screens.tasks.PATIENCE", 50)
    with pytest.raises(ValueError, match=r"after 0 different tasks 50 samples gave no new one; need a smaller count"):
        Screens(tier=1, apps=1, max_steps=1).tasks("test", 1, 0)


def least(env: Screens, start: State, depth: int) -> int | None:
    """The fewest actions to success, by flooding the environment's own steps."""
    seen, front = {start.key}, deque([(0, start)])
    while front:
        steps, state = front.popleft()
        if steps == depth:
            return None
        for action in state.admissible or ():
            step = env.step(state, action)
            if step.success:
                return steps + 1
            if step.outcome == Outcome.OPEN and step.state.key not in seen:
                seen.add(step.state.key)
                front.append((steps + 1, step.state))
    return None


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("page_rows", [2, 8])
def test_plans_of_one_request_are_shortest(links: bool, page_rows: int) -> None:
    env = Screens(tier=1, links=links, apps=2, rows=2, page_rows=page_rows, ends="success", targets="none")
    for task in env.tasks("train", 12, 4):
        start = env.start(task)
        plan = env.plan(start) or ()
        assert least(env, start, len(plan)) == len(plan)


def test_longer_plans_of_one_request_are_shortest() -> None:
    env = Screens(tier=2, apps=1, rows=1, ends="success", targets="none")
    single = [task for task in env.tasks("train", 30, 0) if len(task.data["goals"]) == 1]  # type: ignore[arg-type]
    for task in single[:4]:
        start = env.start(task)
        plan = env.plan(start) or ()
        assert least(env, start, len(plan)) == len(plan)
