"""A graph of thoughts: transformations, errors, the oracle's schedule, and the solver's seat."""

import pickle

import pytest

from bough.env import Branching, EnvFault, ScriptedSeats, State, Step
from bough.tree import Outcome, Task
from bough.worlds.thoughts import ScriptedSolver, ThoughtGraph
from bough.worlds.thoughts.env import sort_errors, thought_state

TASK = Task(id="a", data={"numbers": [5, 3, 9, 1, 0, 2]})


def scripted(reach: int = 3, slip: float = 1.0, **fields: int) -> ScriptedSeats:
    env = ThoughtGraph(numbers=6, reach=reach, **fields)  # type: ignore[arg-type]
    return ScriptedSeats(env=env, scripts={"solver": ScriptedSolver(reach=reach, slip=slip, short_slip=0.0)})


def do(env: ScriptedSeats, *moves: str) -> Step:
    step = Step(state=env.start(TASK))
    for move in moves:
        step = env.step(step.state, move)
    return step


def lines(state: State) -> list[str]:
    return str(state.observation).splitlines()


def test_transformations_add_thoughts_and_keep_the_others() -> None:
    env = scripted()
    step = do(env, "split 0", "solve 1", "solve 2", "merge 3 4")
    assert lines(step.state) == [
        "0 task: 5 3 9 1 0 2",
        "1 split 0: 5 3 9",
        "2 split 0: 1 0 2",
        "3 solve 1: 3 5 9",
        "4 solve 2: 0 1 2",
        "5 merge 3 4: 0 1 2 3 5 9",
    ]
    assert step.reward == -0.01
    end = env.step(step.state, "submit 5")
    assert (end.outcome, end.success, end.reward, end.info["errors"]) == (Outcome.TERMINATED, True, 1.0, 0)
    assert not env.step(end.state, "submit 5").valid


def test_a_long_list_is_solved_with_errors_and_each_refinement_corrects_one() -> None:
    env = scripted()
    direct = do(env, "solve 0")
    assert lines(direct.state)[1] == "1 solve 0: 0 1 3 5 9 2"
    ended = env.step(direct.state, "submit 1")
    assert (ended.success, ended.reward) == (False, 1 - 1 / 6)
    refined = do(env, "solve 0", "refine 1", "refine 2", "refine 3", "submit 4")
    assert refined.success
    assert lines(env.step(direct.state, "refine 1").state)[2] == "2 refine 1: 0 1 3 5 2 9"


@pytest.mark.parametrize("move", ["merge 3 4", "merge 0 1", "submit 3", "refine 1", "split 0", "solve 9", "sort", ""])
def test_a_transformation_that_does_not_fit_the_graph_costs_a_move_and_changes_nothing(move: str) -> None:
    env = scripted()
    before = do(env, "split 0", "solve 1")
    step = env.step(before.state, move)
    assert not step.valid
    assert step.state.key == before.state.key
    assert move not in (before.state.admissible or ())


def test_answers_merge_only_where_their_lists_are_neighbours() -> None:
    env = scripted()
    state = do(env, "split 0", "solve 2", "solve 1").state
    assert "merge 4 3" in (state.admissible or ())
    assert "merge 3 4" not in (state.admissible or ())


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_oracle_solves_every_task_with_a_solver_of_its_reach(split: str) -> None:
    solver = ScriptedSolver(reach=2, short_slip=0.5)
    env = ScriptedSeats(env=ThoughtGraph(numbers=6, reach=2, max_moves=30), scripts={"solver": solver})
    moves: list[str] = []
    for task in env.tasks(split, 8, 0):  # type: ignore[arg-type]
        step = Step(state=env.start(task))
        for move in env.plan(step.state) or ():
            moves.append(str(move))
            assert move in (step.state.admissible or ())
            step = env.step(step.state, move)
        assert step.success
        assert env.plan(step.state) is None
    assert {each.split()[0] for each in moves} == {"split", "solve", "refine", "merge", "submit"}


def test_a_model_may_be_the_solver_and_its_last_line_of_numbers_counts() -> None:
    env = ThoughtGraph(numbers=6)
    asked = env.step(env.start(TASK), "solve 0")
    assert asked.state.seat == "solver"
    assert asked.state.observation == "Sort in ascending order: 5 3 9 1 0 2"
    assert env.plan(asked.state) == ("0 1 2 3 5 9",)
    told = env.step(asked.state, "First 0, then 1.\nSo: [0, 1, 2, 3, 5, 9]\nDone.")
    assert told.state.seat == "controller"
    assert thought_state(told.state).thoughts[1].answer == (0, 1, 2, 3, 5, 9)
    silent = env.step(asked.state, "I do not know.")
    assert not silent.valid
    assert thought_state(silent.state).thoughts[1].answer == ()
    refine = env.step(env.step(asked.state, "0 1 2").state, "refine 1").state
    assert refine.observation == "Sorted in ascending order, 5 3 9 1 0 2 is not quite: 0 1 2\nCorrect it."


def test_moves_run_out() -> None:
    env = scripted(max_moves=2)
    step = do(env, "solve 0", "refine 1")
    assert (step.outcome, step.success) == (Outcome.TRUNCATED, False)


def test_errors_are_wrong_neighbours_and_wrong_counts() -> None:
    assert sort_errors((0, 1, 2), (2, 1, 0)) == 0
    assert sort_errors((), (2, 1, 0)) == 3
    assert sort_errors((1, 0, 2, 2), (2, 1, 0)) == 2


def test_states_are_values_and_mistakes_are_named() -> None:
    env = scripted()
    state = pickle.loads(pickle.dumps(do(env, "split 0").state))
    assert env.step(state, "solve 1").valid
    assert env.branching is Branching.COPY
    with pytest.raises(ValueError, match=r"ThoughtGraph.numbers: got 1"):
        ThoughtGraph(numbers=1)
    with pytest.raises(ValueError, match=r"got the numbers \[1\]"):
        env.start(Task(id="b", data={"numbers": [1]}))
    with pytest.raises(EnvFault, match="no solver acts"):
        ScriptedSolver().act(ThoughtGraph().start(TASK), 0)
    with pytest.raises(ValueError, match=r"ScriptedSolver.slip: got 2\.0"):
        ScriptedSolver(slip=2.0)
