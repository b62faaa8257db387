"""The symbolic memory: observations as tables, queries as a tool, and the inner environment as it is."""

from typing import Any

import pytest

from bough.env import SqlMemory, State, call
from bough.env.wrappers.sql_memory import facts_in
from bough.tree import Action, Message, ToolCall, plain_text
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.pantry.preset import buy, look, pantry


def lake() -> tuple[SqlMemory, State]:
    env = SqlMemory(env=FrozenLake())
    return env, env.start(env.tasks("train", 1, 0)[0])


def test_a_query_finds_what_was_observed_and_does_not_step_the_environment() -> None:
    env, state = lake()
    first = env.step(state, "right").state
    asked = env.step(first, "recall: select turn, action from observed order by turn")
    assert asked.state.observation == "turn | action\n0 | \n1 | right"
    assert (asked.reward, asked.valid, asked.outcome.name) == (0.0, True, "OPEN")
    assert asked.state.key != first.key
    plain = FrozenLake()
    inner = plain.step(plain.start(plain.tasks("train", 1, 0)[0]), "right").state
    assert first.observation == inner.observation
    assert env.step(asked.state, "down").state.observation == plain.step(inner, "down").state.observation
    assert env.plan(asked.state) == plain.plan(inner)


def test_wrong_and_writing_queries_get_an_error_and_are_not_valid() -> None:
    env, state = lake()
    for query in ("selec 1", "delete from observed", "select * from nothing"):
        step = env.step(state, f"recall: {query}")
        assert plain_text(step.state.observation).startswith("error: ")
        assert not step.valid
    assert env.step(state, "recall: select count(*) as n from observed").state.observation == "n\n1"


def test_facts_are_values_of_json_or_of_lines() -> None:
    json = '[{"good": "tea", "price": 3, "at": {"x": 1.5}}, "last"]'
    assert [*facts_in(2, json)] == [
        (2, 0, "good", "tea"),
        (2, 0, "price", 3),
        (2, 0, "at.x", 1.5),
        (2, 1, "value", "last"),
    ]
    assert [*facts_in(0, "price: 3\nnothing here\nbest good = tea")] == [(0, 0, "price", 3), (0, 2, "best good", "tea")]
    assert [*facts_in(0, "7")] == [(0, 0, "value", 7)]


def test_with_tools_it_is_a_tool_and_its_result_has_the_id_of_the_call() -> None:
    inner = pantry().env
    env = SqlMemory(env=inner)
    task = env.tasks("train", 1, 0)[0]
    state = env.start(task)
    assert [tool.name for tool in state.tools] == ["look", "buy", "recall"]
    sql = "select value from facts where name = 'missing'"
    both: Any = Action(calls=(call(look).calls[0], recall(sql, "q7")))
    step = env.step(state, both)
    missing = len({*task.data["needed"]} - {*task.data["has"]})
    seen = step.state.observation
    assert isinstance(seen, tuple)
    assert [message.role for message in seen] == ["tool", "tool"]
    assert seen[-1] == Message(role="tool", content=f"value\n{missing}", call_id="q7")
    bad = env.step(state, Action(calls=(recall(3, "q8"),)))
    assert not bad.valid
    assert plain_text(bad.state.observation).startswith("error: ")
    only = env.step(step.state, Action(calls=(recall("select max(turn) as last from observed", "q9"),)))
    assert plain_text(only.state.observation) == "last\n1"
    assert env.step(only.state, call(buy, good="nothing")).state.value != only.state.value


def recall(sql: object, call_id: str) -> Any:
    return ToolCall(name="recall", arguments={"sql": sql}, call_id=call_id)


def test_states_of_others_and_settings_are_refused() -> None:
    env, _ = lake()
    with pytest.raises(TypeError, match=r"SqlMemory: got a state with a value of type int"):
        env.step(State(observation="", key="", value=3), "right")
    with pytest.raises(ValueError, match=r"SqlMemory\.rows: got 0"):
        SqlMemory(env=FrozenLake(), rows=0)
