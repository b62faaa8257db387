"""Snapshots of a teacher's way: which there are, how they are clustered and drawn, and for how long."""

import asyncio
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies
from tests.small import run as small

from bough.hooks import Snapshots
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.snapshots import SnapshotsState, part
from bough.methods.s3rl import s3rl
from bough.rollout import Deadlines
from bough.train.runtime import Runtime
from bough.tree import Task

TASKS = [Task(id=str(number)) for number in range(6)]
LENGTHS = {"0": 3, "1": 1, "2": 4, "3": 0, "4": 2, "5": 3}


async def teacher(task: Task) -> tuple[str, ...]:
    return tuple(f"{task.id}{turn}" for turn in range(LENGTHS[task.id]))


def begin(taken: SnapshotsState, tasks: list[Task], seed: int) -> list[Task]:
    return asyncio.run(taken.rewrite(tasks, teacher, seed))


def fresh(**settings: float) -> SnapshotsState:
    recipe = Snapshots(**{"steps": 10, **settings})  # type: ignore[arg-type]
    return recipe.build(HookSetup(vocab_tokens=10))


def test_the_example_in_words() -> None:
    one = fresh(discount=0.5, clusters=2)
    begin(one, TASKS[:2], 0)
    found = one.snapshots()
    assert [task.start for task, _ in found] == [(), ("00",), ("00", "01"), ()]
    assert [value for _, value in found] == [0.125, 0.25, 0.5, 0.5]
    assert part(np.asarray([value for _, value in found]), 2).tolist() == [0, 0, 1, 1]


def test_places_are_so_far_apart() -> None:
    one = fresh(every=2)
    begin(one, TASKS[2:3], 0)
    assert [len(task.start) for task, _ in one.snapshots()] == [0, 2]


def test_the_first_ways_are_taken_and_no_more() -> None:
    one = fresh(episodes=3)
    begin(one, TASKS[:2], 0)
    begin(one, TASKS, 1)
    assert [task.id for task, _ in one.data.ways] == ["0", "1", "2"]
    begin(one, TASKS, 2)
    assert len(one.data.ways) == 3
    # What the teacher can't solve is left out.
    some = fresh(episodes=6)
    begin(some, TASKS, 0)
    assert [task.id for task, _ in some.data.ways] == ["0", "1", "2", "4", "5"]


def test_clusters_are_drawn_alike_whatever_their_size() -> None:
    one = fresh(discount=0.1, clusters=2)
    begin(one, TASKS, 0)
    found = one.snapshots()
    label = dict(zip([task.id for task, _ in found], part(np.asarray([v for _, v in found]), 2).tolist(), strict=True))
    sizes = Counter(label.values())
    assert sizes == {1: 5, 0: 8}
    drawn = Counter(begin(one, TASKS[:1], seed)[0].id for seed in range(600))
    by_cluster = Counter[int]()
    for name, times in drawn.items():
        by_cluster[label[name]] += times
    assert by_cluster[0] / 600 == pytest.approx(0.5, abs=0.07)
    assert set(drawn) == set(label)


def test_none_comes_twice_while_there_are_others() -> None:
    one = fresh(clusters=3)
    for seed in range(20):
        begun = begin(one, TASKS, seed)
        assert len({task.id for task in begun}) == len(begun) == 6
    few = fresh(episodes=1)
    begun = begin(few, TASKS, 0)
    assert sorted(Counter(task.id for task in begun).values()) == [2, 2, 2]
    assert begun == begin(few, TASKS, 0)


def test_it_is_for_the_first_steps() -> None:
    one = fresh(steps=2)
    for _ in range(2):
        assert begin(one, TASKS, 0) != TASKS
        begin(one, TASKS, 1)
        for _ in range(2):
            one.transform([], 0)
        assert one.observe() == {"snapshots/used": 12.0, "snapshots/kept": 13.0}
    assert begin(one, TASKS, 0) == TASKS
    one.transform([], 0)
    assert one.observe()["snapshots/used"] == 0.0


@pytest.mark.parametrize(("steps", "used"), [(20, 2), (9, 0)])
def test_without_a_number_it_is_for_a_tenth_of_the_run(tmp_path: Path, steps: int, used: int) -> None:
    """Of the run as it is, whatever the number of steps of the world that the method saw."""
    runtime = Runtime(s3rl(small().world, episodes=6).replace(steps=steps), tmp_path, Deadlines())
    (one,) = runtime.main.hooks.members.values()
    assert isinstance(one, SnapshotsState)
    for number in range(used + 1):
        assert (begin(one, TASKS, 0) != TASKS) == (number < used)
        one.observe()


def test_it_remembers_bit_for_bit() -> None:
    one, again = fresh(steps=3, episodes=2), fresh(steps=3, episodes=2)
    begin(one, TASKS, 0)
    one.observe()
    restore(again.data, save(one.data))
    assert again.data.ways == one.data.ways
    for step in range(3):
        assert begin(again, TASKS, step) == begin(one, TASKS, step)
        assert again.observe() == one.observe()


def test_a_teacher_that_knows_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="Snapshots: got no solution of any of 1 tasks; need an environment"):
        begin(fresh(), TASKS[3:4], 0)


@given(value=strategies.lists(strategies.integers(0, 8), min_size=1, max_size=8), clusters=strategies.integers(1, 4))
def test_clusters_are_the_best_there_are(value: list[int], clusters: int) -> None:
    """Against every way to part the sorted values."""
    numbers = np.asarray(value, dtype=np.float64)
    kinds = sorted(set(value))
    count = min(clusters, len(kinds))

    def cost(label: np.ndarray) -> float:
        return sum(float(((numbers[label == c] - numbers[label == c].mean()) ** 2).sum()) for c in np.unique(label))

    found = part(numbers, clusters)
    assert len(np.unique(found)) == count
    assert all(found[i] <= found[j] for i in range(len(value)) for j in range(len(value)) if value[i] <= value[j])
    cuts = combinations(kinds[1:], count - 1)
    best = min(cost(np.searchsorted(np.asarray(cut), numbers, side="right")) for cut in cuts)
    assert cost(found) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    "fields", [{"episodes": 0}, {"every": 0}, {"clusters": 0}, {"steps": -1}, {"discount": 0.0}, {"discount": 1.1}]
)
def test_ranges(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"Snapshots\..*: got"):
        Snapshots(**fields)  # type: ignore[arg-type]
