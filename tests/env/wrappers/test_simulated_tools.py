"""Tools whose results a seat writes: what each seat reads, what the environment still decides, and the method `cm2`."""

from dataclasses import replace

import pytest
from tests.methods.small import small

from bough.cli.find import find_run
from bough.config import ConfigError
from bough.env import ScriptedSeats, SimulatedTools
from bough.env.env import State
from bough.env.script import Script
from bough.evaluate import CheckSizes, check_env
from bough.evaluate.envs.check_env import NAMES
from bough.roles import OwnPolicy
from bough.train.check import check
from bough.tree import Action, BadCall, Outcome, ToolCall, messages
from bough.worlds.pantry.preset import pantry

ENV = SimulatedTools(env=pantry().env, data=("needed", "has"))
LOOK = Action(calls=(ToolCall(name="look", arguments={}, call_id="1"),))


class Says:
    """A script for the tools."""

    def __init__(self, text: str) -> None:
        self.text = text

    def act(self, state: State, seed: int) -> str:
        del state, seed
        return self.text


def test_the_agent_reads_what_the_seat_of_the_tools_writes() -> None:
    (task,) = ENV.tasks("train", 1, 0)
    state = ENV.start(task)
    assert state.seat == "agent"
    step = ENV.step(state, LOOK)
    assert (step.outcome, step.state.seat, step.state.tools) == (Outcome.OPEN, "tools", ())
    shown = str(step.state.observation)
    assert shown.startswith("look: What is needed")
    assert '"properties"' in shown
    assert all(good in shown for good in task.data["needed"])  # type: ignore[attr-defined]
    assert shown.endswith("look({})")
    step = ENV.step(step.state, "need: caviar")
    assert step.info == {"exact_match": False}
    (message,) = messages(step.state.observation)
    assert (message.role, message.content, message.call_id) == ("tool", "need: caviar", "1")
    assert step.state.seat == "agent"
    assert step.state.tools
    again = ENV.step(step.state, LOOK).state
    assert "look({})\nneed: caviar\n" in str(again.observation), "results agree with those before"


def test_results_by_the_environment_are_the_oracle_of_the_tools_and_its_reward_stays() -> None:
    for task in ENV.tasks("test", 3, 0):
        state, seats, success = ENV.start(task), list[str](), False
        while plan := ENV.plan(state):
            seats.append(state.seat)
            step = ENV.step(state, plan[0])
            if state.seat == "tools":
                assert step.info == {"exact_match": True}
            state, success = step.state, step.success
            if step.outcome is not Outcome.OPEN:
                break
        assert success
        assert {"agent", "tools"} == set(seats)
    lying: Script = Says("missing: 0")
    blind = ScriptedSeats(env=ENV, scripts={"tools": lying})
    (task,) = blind.tasks("test", 1, 0)
    state = blind.step(blind.start(task), LOOK).state
    assert messages(state.observation)[0].content == "missing: 0"
    assert not blind.step(state, Action(text="done")).success, "the environment knows better"


def test_a_call_that_does_not_fit_is_not_simulated() -> None:
    env = SimulatedTools(env=replace(pantry().env, max_errors=None))  # type: ignore[type-var]
    (task,) = env.tasks("train", 1, 0)
    wrong = Action(calls=(BadCall(text="{", problem="no JSON"), ToolCall(name="look", arguments={}, call_id="b")))
    step = env.step(env.start(task), wrong)
    assert not step.valid
    assert step.state.seat == "tools"
    first, second = messages(env.step(step.state, "need: tea").state.observation)
    assert "no JSON" in first.content
    assert second.content == "need: tea"


def test_states_that_differ_in_a_simulated_result_have_different_keys() -> None:
    (task,) = ENV.tasks("train", 1, 0)
    tools = ENV.step(ENV.start(task), LOOK).state
    one, two, same = (ENV.step(tools, text).state.key for text in ("need: tea", "need: rice", "need: tea"))
    assert one == same != two
    assert not ENV.step(tools, " ").valid


def test_the_contract_of_environments() -> None:
    sizes = CheckSizes(tasks=2, walks=2, steps=5, episodes=8, seconds=2, processes=1)
    report = check_env(ENV, sizes=sizes, only=[name for name in NAMES if name != "fresh processes"])
    assert not report.failures, [f"{each.name}: {each.got}" for each in report.failures]


def test_missing_data_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"SimulatedTools.data: got 'stock'; task \S+ has the fields \['has', 'id', 'needed'"
    ):
        SimulatedTools(env=pantry().env, data=("stock",)).tasks("train", 1, 0)


def test_cm2_with_simulated_tools() -> None:
    run = find_run("cm2(simulated=true, data=[needed,has])", "pantry")
    assert run.world.env == SimulatedTools(env=pantry().env, data=("needed", "has"))
    assert isinstance(run.policies["tools"], OwnPolicy)
    assert run.policies["tools"].frozen
    check(small(run))
    with pytest.raises((ConfigError, ValueError), match=r"cm2.simulated: got FrozenLake; need an environment with too"):
        find_run("cm2(simulated=true)", "frozenlake")
