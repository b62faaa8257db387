"""Linear programs: an exact verdict, and right answers of wrong models."""

from fractions import Fraction
from itertools import pairwise

import pytest

from bough.tree import Outcome, Task
from bough.worlds.linear_programs import LinearPrograms
from bough.worlds.linear_programs.env import optimum

TASK = Task(id="t", data={"objective": [3, 2, 0], "rows": [[1, 1, 4], [1, 0, 2]]})


ENV = LinearPrograms()


def play(*actions: str, env: LinearPrograms = ENV, task: Task = TASK) -> tuple[bool, Outcome, list[object]]:
    state, rights = env.start(task), list[object]()
    step = env.step(state, actions[0])
    rights.append(step.info.get("right"))
    for action in actions[1:]:
        step = env.step(step.state, action)
        rights.append(step.info.get("right"))
    return step.success, step.outcome, rights


def test_the_maximum_is_exact() -> None:
    assert optimum((3, 2, 0), [(1, 1, 4), (1, 0, 2)]) == 10
    assert optimum((1, 1, 0), [(3, 1, 2), (1, 3, 2)]) == 1
    assert optimum((1, 0, 0), [(3, 1, 2)]) == Fraction(2, 3)
    assert optimum((1, 1, 0), [(1, 0, 4)]) is None, "no bound"
    assert optimum((1, 0, 0), [(1, 0, 4)]) == 4, "y has no bound, and no profit"


def test_the_verdict_is_that_of_the_solver() -> None:
    assert play("max 3 2", "row 1 1 4", "row 1 0 2", "solve") == (True, Outcome.TERMINATED, [True, True, True, None])
    assert play("max 3 2", "row 1 1 4", "row 1 0 1", "solve")[0] is False
    assert play("max 3 2", "row 1 1 4", "solve")[0] is False
    assert play("solve")[0] is False
    assert play("hm", "max 3", "row 1 1 99999", "max -1 2", "row 1 1 4", "row 1 0 2")[1] is Outcome.TRUNCATED


def test_a_wrong_model_can_have_the_right_maximum_and_its_steps_show_it() -> None:
    """The second row does not matter at the best point: the solver accepts a wrong one, a judge of steps does not."""
    task = Task(id="s", data={"objective": [1, 1, 0], "rows": [[1, 1, 4], [1, 0, 9]]})
    success, _, rights = play("max 1 1", "row 1 1 4", "row 1 0 8", "solve", task=task)
    assert success
    assert rights == [True, True, False, None]


def test_the_oracle_solves_every_task_and_splits_are_apart() -> None:
    env = LinearPrograms()
    drawn = {split: env.tasks(split, 30, 0) for split in ("train", "test")}  # type: ignore[arg-type]
    assert not {each.id for each in drawn["train"]} & {each.id for each in drawn["test"]}
    for task in drawn["train"]:
        plan = env.plan(env.start(task))
        assert plan is not None
        assert play(*plan, env=env, task=task)[0]
        assert all(one != two for one, two in pairwise(plan))


@pytest.mark.parametrize("data", [{}, {"objective": [1, 2], "rows": [[1, 1, 1]]}, {"objective": [1, 2, 0], "rows": []}])
def test_wrong_tasks_and_settings_are_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="need three whole numbers, and 1 to 4 rows of them"):
        LinearPrograms().start(Task(id="x", data=data))
    with pytest.raises(ValueError, match=r"LinearPrograms.resources: got 5; need a number from 1 to 4"):
        LinearPrograms(resources=5)
