import asyncio
import copy

import numpy as np
import pytest
from play import walk, walk_on, worlds

from bough.env import EnvFault, FrozenLake, Host, Inline, State, Step
from bough.tree import Outcome, Task

STATE = State(observation="0", key="0", value=0)
STEP = Step(state=STATE)
TASK = Task(id="any")


def wrong(piece: State | Step, **fields: object) -> State | Step:
    """With fields that the type checks of the tests would not let through, as an environment in the wild has none."""
    piece = copy.copy(piece)
    for name, value in fields.items():
        object.__setattr__(piece, name, value)
    return piece


def test_it_plays_what_the_environment_plays() -> None:
    env = FrozenLake()
    (task,) = env.tasks("train", 1, 0)
    host = Inline(env=env)
    assert isinstance(host, Host)
    assert asyncio.run(walk_on(host, task, ["left", "hop", "down"])) == walk(env, task, ["left", "hop", "down"])
    assert asyncio.run(host.plan(env.start(task))) == env.plan(env.start(task))
    assert asyncio.run(Inline(env=worlds.Trouble()).plan(STATE)) is None
    asyncio.run(host.close())
    asyncio.run(host.close())


@pytest.mark.parametrize(
    ("call", "answer", "message"),
    [
        ("start", 3, "Answering.start: got 3 of type int; need a State"),
        ("start", STEP, "of type Step; need a State"),
        ("start", wrong(STATE, observation=None), "State.observation = None of type NoneType; need a string"),
        ("start", wrong(STATE, key=7), "State.key = 7 of type int; need a string"),
        ("start", wrong(STATE, admissible=["left"]), "State.admissible = .* of type list; need a tuple of strings"),
        ("step", None, "Answering.step: got None of type NoneType; need a Step"),
        ("step", (STATE, 0.0, False, {}), "of type tuple; need a Step"),
        ("step", wrong(STEP, state="s"), "Answering.step: got 's' of type str; need a State"),
        ("step", wrong(STEP, reward="1"), "Step.reward = '1' of type str; need a finite float"),
        ("step", wrong(STEP, reward=float("nan")), "Step.reward = nan of type float; need a finite float"),
        ("step", wrong(STEP, reward=np.float32(1)), "of type float32; need a finite float"),
        ("step", wrong(STEP, outcome=Outcome.FAILED), "Step.outcome = .*; need OPEN, TERMINATED or TRUNCATED"),
        ("step", wrong(STEP, outcome=True), "Step.outcome = True of type bool; need OPEN"),
        ("plan", "left", "Answering.plan: got 'left' of type str; need a tuple of strings, or None"),
        ("plan", ("left", 1), "of type tuple; need a tuple of strings"),
    ],
)
def test_a_wrong_answer_is_a_fault_that_says_what_came_and_what_is_needed(
    call: str, answer: object, message: str
) -> None:
    host = Inline(env=worlds.Answering(answer=answer))
    asked = {"start": (TASK,), "step": (STATE, "any"), "plan": (STATE,)}[call]
    with pytest.raises(EnvFault, match=message):
        asyncio.run(getattr(host, call)(*asked))


def test_right_answers_pass() -> None:
    assert asyncio.run(Inline(env=worlds.Answering(answer=STATE)).start(TASK)) is STATE
    step = wrong(STEP, reward=np.float64(0.5), outcome=Outcome.TERMINATED)
    assert asyncio.run(Inline(env=worlds.Answering(answer=step)).step(STATE, "a")) is step
    assert asyncio.run(Inline(env=worlds.Answering(answer=("a",))).plan(STATE)) == ("a",)
    assert asyncio.run(Inline(env=worlds.Answering(answer=None)).plan(STATE)) is None


def test_an_exception_is_a_fault_with_its_cause() -> None:
    host = Inline(env=worlds.Trouble())
    with pytest.raises(EnvFault, match=r"Trouble.step raised KeyError: 'the bottom of it'") as caught:
        asyncio.run(host.step(STATE, "raise"))
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(EnvFault, match=r"Trouble.start raised KeyError"):
        asyncio.run(host.start(Task(id="raise")))


def test_bad_task_data_is_the_users_to_mend() -> None:
    with pytest.raises(ValueError, match="got a bad task; need a good one"):
        asyncio.run(Inline(env=worlds.Trouble()).start(Task(id="bad")))
