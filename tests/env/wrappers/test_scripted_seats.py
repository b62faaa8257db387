"""Scripts inside of an environment: one agent is left, with its own rewards; the same action has the same reply."""

import pickle
from dataclasses import dataclass

import pytest
from tests.env.nim import Nim

from bough.env import Branching, EnvFault, PlannerExecutor, RandomAction, ScriptedSeats, State, seats_of
from bough.env.env import env_gives
from bough.needs import ORACLE, SEATS
from bough.tree import Outcome, Task
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.shop import Shop

TASK = Task(id="nim 9", seed=5, data={"heap": 9})


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """Takes one."""

    def act(self, state: State, seed: int) -> str:
        del state, seed
        return "1"


def test_the_second_seat_acts_inside_of_a_step() -> None:
    env = ScriptedSeats(env=Nim(), scripts={"second": One()})
    assert (env.branching, dict(env.seats), seats_of(env)) == (Branching.COPY, {}, {})
    assert env.instructions == "Take 1 or 2. Who takes the last wins. You begin."
    assert ORACLE in env_gives(env)
    assert SEATS not in env_gives(env)
    state = env.start(TASK)
    assert (state.seat, state.observation) == ("", "apple 7")
    step = env.step(state, "2")
    assert (step.state.observation, step.reward, step.outcome) == ("apple 4", 0.0, Outcome.OPEN)
    assert env.step(step.state, "2").state.observation == "apple 1"
    last = env.step(env.step(step.state, "2").state, "1")
    assert (last.outcome, last.reward, last.success) == (Outcome.TERMINATED, 1.0, True)
    assert (dict(last.payoffs), dict(last.successes)) == ({}, {})


def test_the_reward_is_that_of_the_seat_that_is_left() -> None:
    env = ScriptedSeats(env=Nim(), scripts={"first": One()})
    state = env.start(TASK)
    assert state.observation == "zebra 6"
    lost = env.step(state, "9")
    assert (lost.valid, lost.reward, lost.success) == (False, -1.0, False)
    won = state
    for action in ("2", "2"):
        step = env.step(won, action)
        won = step.state
    assert (step.reward, step.success) == (-1.0, False), "one is left for the script"


def test_the_same_action_has_the_same_reply_and_tasks_have_different_ones() -> None:
    env = ScriptedSeats(env=Nim(), scripts={"second": RandomAction()})
    state = env.start(TASK)
    step = env.step(state, "1")
    env.step(state, "2")
    assert env.step(pickle.loads(pickle.dumps(state)), "1") == step
    replies = {
        env.step(env.start(Task(id="nim 9", seed=seed, data={"heap": 9})), "1").state.observation for seed in range(20)
    }
    assert replies == {"apple 5", "apple 4"}


def test_the_plan_is_the_play_of_the_oracle_against_the_script() -> None:
    env = ScriptedSeats(env=Nim(), scripts={"second": One()})
    state = env.start(TASK)
    plan = env.plan(state)
    assert plan == ("1", "2", "2"), "7, 6 and 5, 3 and 2, 0: multiples of 3 for the script where possible"
    for action in plan:
        step = env.step(state, action)
        state = step.state
    assert step.success


def test_several_seats_stay_and_a_script_may_begin() -> None:
    env = ScriptedSeats(env=PlannerExecutor(env=FrozenLake(size=4), turns=2), scripts={"planner": One()})
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert "subgoal: 1" in state.observation
    assert state.seat == ""


def test_wrong_scripts_are_refused() -> None:
    for scripts in ({"third": One()}, {"first": One(), "second": One()}):
        with pytest.raises(ValueError, match=r"need scripts for some of them"):
            ScriptedSeats(env=Nim(), scripts=scripts).tasks("train", 1, 0)
    with pytest.raises(ValueError, match=r"need scripts for some of them"):
        ScriptedSeats(env=Shop(), scripts={}).tasks("train", 1, 0)
    with pytest.raises(TypeError, match=r"need one of its own"):
        ScriptedSeats(env=Nim(), scripts={"second": One()}).step(Nim().start(TASK), "1")


def test_scripts_that_never_end_are_a_fault() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Stuck(Nim):
        def step(self, state: State, action: str):
            step = Nim.step(self, state, action)
            stays = State(observation="", key="s", value=state.value, admissible=("1",), seat="second")
            return type(step)(state=stays)

    env = ScriptedSeats(env=Stuck(), scripts={"second": One()})
    with pytest.raises(EnvFault, match=r"1000 turns of scripts in a row"):
        env.step(env.start(TASK), "1")
