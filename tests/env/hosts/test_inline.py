import asyncio
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.env.play import walk, walk_on, worlds

from bough.env import EnvFault, Host, InProcessHost, State, Step, UserCodeError
from bough.tree import Outcome, Task
from bough.worlds.frozenlake import FrozenLake

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
    host = InProcessHost(env=env)
    assert isinstance(host, Host)
    assert asyncio.run(walk_on(host, task, ["left", "hop", "down"])) == walk(env, task, ["left", "hop", "down"])
    assert asyncio.run(host.plan(env.start(task))) == env.plan(env.start(task))
    assert asyncio.run(InProcessHost(env=worlds.Trouble()).plan(STATE)) is None
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
        ("step", wrong(STEP, reward=1e308), "Step.reward = 1e.308 of type float; need a finite float of at most 1e.15"),
        ("step", wrong(STEP, reward=10**400), "of type int; need a finite float of at most 1e.15"),
        ("step", wrong(STEP, reward=np.ones(1)), "of type ndarray; need a finite float"),
        ("step", wrong(STEP, success="yes"), "Step.success = 'yes' of type str; need True or False"),
        ("step", wrong(STEP, valid=np.int64(2)), "Step.valid = 2 of type int; need True or False"),
        ("step", wrong(STEP, info={"seen": {1}}), r"Step.info\['seen'\] = .1. of type set; need a value that JSON"),
        ("step", wrong(STEP, outcome=Outcome.FAILED), "Step.outcome = .*; need OPEN, TERMINATED or TRUNCATED"),
        ("step", wrong(STEP, outcome=True), "Step.outcome = True of type bool; need OPEN"),
        ("plan", "left", "Answering.plan: got 'left' of type str; need a tuple of strings or Action, or None"),
        ("plan", ("left", 1), "of type tuple; need a tuple of strings"),
    ],
)
def test_a_wrong_answer_is_a_fault_that_says_what_came_and_what_is_needed(
    call: str, answer: object, message: str
) -> None:
    host = InProcessHost(env=worlds.Answering(answer=answer))
    asked = {"start": (TASK,), "step": (STATE, "any"), "plan": (STATE,)}[call]
    with pytest.raises(EnvFault, match=message):
        asyncio.run(getattr(host, call)(*asked))


def test_right_answers_pass() -> None:
    assert asyncio.run(InProcessHost(env=worlds.Answering(answer=STATE)).start(TASK)) is STATE
    step = wrong(STEP, reward=0.5, outcome=Outcome.TERMINATED)
    assert asyncio.run(InProcessHost(env=worlds.Answering(answer=step)).step(STATE, "a")) is step
    assert asyncio.run(InProcessHost(env=worlds.Answering(answer=("a",))).plan(STATE)) == ("a",)
    assert asyncio.run(InProcessHost(env=worlds.Answering(answer=None)).plan(STATE)) is None


def test_numpy_scalars_become_plain_values() -> None:
    step = wrong(
        STEP,
        state=wrong(STATE, observation=np.str_("0")),
        reward=np.float32(0.5),
        valid=np.bool_(False),
        success=np.int64(1),
        replayed_steps=np.int32(2),
        info={"score": np.float32(2), "seen": (np.array([1, 2]), {3: np.bool_(True)})},
    )
    answer = asyncio.run(InProcessHost(env=worlds.Answering(answer=step)).step(STATE, "a"))
    assert answer == Step(
        state=STATE,
        reward=0.5,
        valid=False,
        success=True,
        replayed_steps=2,
        info={"score": 2.0, "seen": [[1, 2], {"3": True}]},
    )
    values = (answer.state.observation, answer.reward, answer.valid, answer.success, answer.replayed_steps)
    assert [type(value) for value in values] == [str, float, bool, bool, int]
    assert b"numpy" not in pickle.dumps(answer)
    for reward in (np.array(0.5), np.float64(0.5), np.int64(1)):
        asked = InProcessHost(env=worlds.Answering(answer=wrong(STEP, reward=reward))).step(STATE, "a")
        assert type(asyncio.run(asked).reward) in (float, int)


def test_an_exception_is_a_fault_with_its_cause() -> None:
    host = InProcessHost(env=worlds.Trouble())
    with pytest.raises(EnvFault, match=r"Trouble.step raised KeyError: 'the bottom of it'") as caught:
        asyncio.run(host.step(STATE, "raise"))
    assert isinstance(caught.value.__cause__, KeyError)
    line = 1 + Path(worlds.__file__).read_text().splitlines().index(" " * 12 + 'raise KeyError("the bottom of it")')
    assert str(caught.value).endswith(f"({worlds.__file__}, line {line}, in step)")
    with pytest.raises(EnvFault, match=r"Trouble.start raised KeyError"):
        asyncio.run(host.start(Task(id="raise")))


def test_bad_task_data_is_the_users_to_mend() -> None:
    told = r"Trouble.start raised ValueError: got a bad task; need a good one \(.*worlds.py, line \d+, in start\)"
    with pytest.raises(UserCodeError, match=told):
        asyncio.run(InProcessHost(env=worlds.Trouble()).start(Task(id="bad")))
    with pytest.raises(ValueError, match="rows") as ours:
        asyncio.run(InProcessHost(env=FrozenLake()).start(Task(id="bad", data={"rows": ["X"]})))
    assert not isinstance(ours.value, UserCodeError)


def test_the_text_of_an_exception_is_cut() -> None:
    class Long(worlds.Trouble):
        def step(self, state: State, action: str) -> Step:  # noqa: ARG002
            raise (KeyError if action == "raise" else EnvFault)("x" * 2**20)

    for action, length in (("raise", 2**20 + 2), ("fault", 2**20)):
        with pytest.raises(EnvFault, match=rf"x\.\.\. \(cut: {length:,} characters\)") as caught:
            asyncio.run(InProcessHost(env=Long()).step(STATE, action))
        assert len(str(caught.value)) < 5000
