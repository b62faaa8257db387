"""Columns of `info` that no field of a tree holds, and marks of tasks."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.tree import InfoColumn, InfoNumber, Outcome, StageError, Task, TaskMark

LENGTH = InfoColumn(name="length", read=lambda info: [each["length"] for each in info if each], need="a length")
PRICE = InfoNumber("price")


def test_a_column_is_computed_once_and_pickled_without_its_function() -> None:
    tree = build(N(parent=-1, kind=PROMPT, info={"length": 1}))
    assert LENGTH.of(replace(tree, replayed=True)) is LENGTH.of(tree)
    assert LENGTH.of(replace(tree, info=({"length": 2},))) == [2]
    assert LENGTH.of(pickle.loads(pickle.dumps(tree))) == [1]
    with pytest.raises(StageError, match="length of task task: got KeyError: 'length'; need a length"):
        LENGTH.of(replace(tree, info=({"other": 1},)))


def test_the_newest_number_on_a_path() -> None:
    info: dict[str, object] = {}
    PRICE.write(info, 3)
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION, info=info), N(parent=1, kind=OBSERVATION)]
    tree = build(*nodes, replace(nodes[1], parent=0, info={}, outcome=Outcome.TERMINATED))
    assert PRICE.of(tree) == pytest.approx([np.nan, 3, np.nan, np.nan], nan_ok=True)
    assert InfoNumber("price").newest(tree) == pytest.approx([np.nan, 3, 3, np.nan], nan_ok=True)


def test_a_marked_task_is_a_task_of_its_own() -> None:
    mark, task = TaskMark("level"), Task(id="a", data={"rows": [1]})
    hard = mark.add(task, "hard")
    assert (hard.id, mark.of(hard), mark.of(task)) == ("a hard", "hard", None)
    assert mark.add(hard, "easy").id == "a easy"
    assert mark.hide(hard) == replace(task, id="a hard")
    assert mark.remove(hard) == task
