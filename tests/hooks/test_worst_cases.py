"""IWOCS: the set of worst cases grows by what probes measure, and its members are trained on in turn."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.trees import chains, rewarded

from bough.hooks import WorstCases
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.worst_cases import WorstCasesState
from bough.tree import Rewarded, Task
from bough.worlds.frozenlake import FrozenLake

LAKE = FrozenLake()
TASKS = LAKE.tasks("train", 4, 0)
SLIPS = (0.0, 0.2, 0.4)


def built(**settings: object) -> WorstCasesState:
    return WorstCases(**settings).build(HookSetup())  # type: ignore[arg-type]


def rewritten(state: WorstCasesState, seed: int = 0) -> list[Task]:
    return asyncio.run(state.rewrite(TASKS, None, seed))


def trees(tasks: Sequence[Task], paid: Mapping[object, float], key: str = "slip") -> list[Rewarded]:
    """Two paths of each task, which pay by its variant."""
    found = [rewarded(chains([paid[task.data[key] if key else task.id]] * 2)) for task in tasks]
    return [replace(each, tree=replace(each.tree, task=task)) for each, task in zip(found, tasks, strict=True)]


def step(state: WorstCasesState, paid: Mapping[object, float]) -> tuple[list[object], Mapping[str, float]]:
    """A step of a run: the slips of its tasks, and the metrics."""
    tasks = rewritten(state)
    state.transform(trees(tasks, paid), 0)
    return [task.data["slip"] for task in tasks], state.observe()


def test_the_worst_variant_joins_and_members_have_their_turns() -> None:
    """Worked example of the docstring: means .9, .4, .6, then .9, .7, .5, then the worst is a member."""
    state = built(key="slip", values=SLIPS, probe_steps=1, train_steps=2)
    slips, metrics = step(state, {0.0: 0.9, 0.2: 0.4, 0.4: 0.6})
    assert {*slips} == {*SLIPS}, "a probe plays all"
    assert metrics == {"worst/set": 1, "worst/return": pytest.approx(0.4), "worst/mean": pytest.approx(1.9 / 3)}
    better = {0.0: 0.9, 0.2: 0.7, 0.4: 0.5}
    assert [step(state, better)[0] for _ in range(2)] == [[0.2] * 4] * 2
    assert {*step(state, better)[0]} == {*SLIPS}
    assert state.data.members == ["0.2", "0.4"]
    assert [step(state, better)[0][0] for _ in range(2)] == [0.4, 0.2], "the newest first"
    step(state, better)
    assert state.data.members == ["0.2", "0.4"], "the worst one is a member"


def test_tasks_can_be_the_variants() -> None:
    state = built()
    ids = [task.id for task in TASKS]
    assert state.weigh(ids) is None
    assert rewritten(state) == TASKS
    state.transform(trees(TASKS, dict(zip(ids, (1.0, 0.5, 0.0, 0.5), strict=True)), key=""), 0)
    state.observe()
    weights = state.weigh(ids)
    assert weights is not None
    assert np.argmax(weights) == 2
    assert weights[2] / weights.sum() > 0.999


def test_a_probe_of_small_batches_plays_all_variants() -> None:
    """Four tasks a step: the two steps of a probe play seven variants, and ten are played in two probes."""
    for count, probes in ((7, 1), (10, 2)):
        values = tuple(number / 20 for number in range(count))
        state, paid = built(key="slip", values=values, probe_steps=2, train_steps=1), dict.fromkeys(values, 0.5)
        played = set[object]()
        for number in range(3 * probes):
            assert state.probing == (number % 3 < 2)
            probing = state.probing
            slips, metrics = step(state, paid)
            played |= {*slips} if probing else set()
            assert metrics["worst/set"] == (number > 0), "the first probe has two steps"
        assert played == {*values}


def test_a_restored_set_is_the_same() -> None:
    one, other = (built(key="slip", values=SLIPS) for _ in range(2))
    step(one, {0.0: 0.9, 0.2: 0.4, 0.4: 0.6})
    restore(other.data, save(one.data))
    assert rewritten(one, 3) == rewritten(other, 3)
    assert (one.data.members, other.probing) == (other.data.members, one.probing)


def test_slips_of_a_task_replace_those_of_the_lake() -> None:
    """The same map under other dynamics: with certain slips no move goes straight."""
    task = TASKS[0]
    slippery = replace(task, data={**task.data, "slip": 1.0})
    start, other = LAKE.start(task), LAKE.start(slippery)
    assert start.observation == other.observation
    moves = [(LAKE.step(start, move).state, LAKE.step(other, move).state) for move in ("left", "down", "right", "up")]
    assert any(straight.key != slid.key for straight, slid in moves)
    twin = replace(LAKE, slip=1.0).start(task)
    for move in ("left", "down"):
        assert LAKE.step(other, move).state.key == replace(LAKE, slip=1.0).step(twin, move).state.key
    with pytest.raises(ValueError, match="got slip=2"):
        LAKE.start(replace(task, data={**task.data, "slip": 2}))


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="need a key with different values, or neither"):
        WorstCases(key="slip")
    with pytest.raises(ValueError, match="probe_steps=0"):
        WorstCases(probe_steps=0)
