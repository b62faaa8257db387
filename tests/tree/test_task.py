"""Tasks that begin elsewhere: their ids, and how they are written down."""

import json

from hypothesis import given, strategies

from bough.tree import Task

LAKE = Task(id="lake", seed=3, data={"rows": ["SF", "FG"]})
ACTIONS = strategies.lists(strategies.text(max_size=3), max_size=4)


@given(first=ACTIONS, second=ACTIONS, third=ACTIONS)
def test_a_place_has_one_id_however_it_was_reached(first: list[str], second: list[str], third: list[str]) -> None:
    there = LAKE.after(first).after(second)
    assert there == LAKE.after(first + second)
    assert there.start == (*first, *second)
    assert (there.id == LAKE.after(third).id) == (first + second == third)
    assert (there.seed, there.data) == (LAKE.seed, LAKE.data)


@given(actions=ACTIONS)
def test_what_is_written_is_read(actions: list[str]) -> None:
    task = LAKE.after(actions)
    assert Task.read(json.loads(json.dumps(task.record()))) == task
    assert ("start" in task.record()) == bool(actions), "files without other starts stay as they were"


def test_an_id_may_say_anything() -> None:
    odd = Task(id="the morning after the storm")
    assert odd.after(["a"]).id.startswith("the morning after the storm after 1-")
    assert odd.after(["a"]).after(["b"]) != Task(id="the morning").after(["a", "b"])
