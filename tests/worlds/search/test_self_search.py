"""The model as its own engine: one turn, the same questions."""

import pytest

from bough.context import SearchBlocks
from bough.env import Branching, State
from bough.tree import Action, Message, Outcome, Task, ToolCall
from bough.worlds.search import KnowledgeGraph, SearchQa, SelfSearch
from bough.worlds.search.question import read_question

GRAPH = KnowledgeGraph(entities=100)
ENV = SelfSearch(source=GRAPH)


def test_the_oracle_writes_the_form_and_is_right() -> None:
    assert ENV.branching is Branching.COPY
    for task in ENV.tasks("train", 10, 0):
        state = ENV.start(task)
        plan = ENV.plan(state)
        assert plan is not None
        (text,) = plan
        step = ENV.step(state, text)
        assert (step.outcome, step.success, step.reward, step.valid) == (Outcome.TERMINATED, True, 1.0, True)
        parsed = SearchBlocks()(text)
        assert parsed.action == text
        assert parsed.marks == {"format": 1.0}
        assert [text[begin:end] for begin, end in parsed.spans.values()] == [
            part for part in text.split("\n") if part.startswith("<information>")
        ]


def test_its_tasks_are_those_of_the_real_engine() -> None:
    assert ENV.tasks("test", 10, 0) == SearchQa(source=GRAPH).tasks("test", 10, 0)
    assert ENV.data_hash == GRAPH.data_hash


def test_its_blocks_search_in_the_real_engine() -> None:
    env = SearchQa(source=GRAPH)
    (task,) = env.tasks("test", 1, 0)
    state, queries = env.start(task), [each.query for each in read_question(task).evidence]
    for number, query in enumerate(queries, 1):
        step = env.step(state, f"<think>I need it.</think>\n<search> {query} </search>\n<information>made up")
        called = env.step(state, Action(calls=(ToolCall(name="search", arguments={"query": query}),)))
        assert (step.outcome, step.valid, step.info["calls"]) == (Outcome.OPEN, True, number)
        assert step.state.key == called.state.key
        (message,), (result,) = step.state.observation, called.state.observation
        assert message == Message(role="user", content=f"<information>{result.content}</information>")
        state = step.state
    answer = ", ".join(each[0] for each in read_question(task).answers)
    step = env.step(state, f"<search>more</search><answer>{answer}</answer>")
    assert (step.outcome, step.success, step.info["calls"]) == (Outcome.TERMINATED, True, len(queries))
    for text in (answer, f"<search>{answer}", f"<think>x</think>{answer}", "<search"):
        assert env.step(env.start(task), text).outcome is Outcome.TERMINATED
    assert not env.step(env.start(task), Action(text="<search></search>")).success


def test_answers() -> None:
    state = ENV.start(Task(id="x", data={"question": "Who?", "answers": ["Bak Lum"]}))
    assert state.observation == "Who?"
    assert ENV.plan(state) is None
    assert ENV.step(state, "<answer>the bak lum</answer>").success
    half = ENV.step(state, "<think>Bak Lum</think><answer>Bak</answer>")
    assert (half.success, half.reward) == (False, 0.0)
    assert SelfSearch(source=GRAPH, metric="f1").step(state, "Bak").reward == pytest.approx(2 / 3)
    for text in ("", "\0", "\ud800", "<answer></answer>", "<answer>" * 1000, "x" * 10**6):
        step = ENV.step(state, text)
        assert (step.outcome, step.success) == (Outcome.TERMINATED, False)
    assert not ENV.step(state, "<answer></answer>").valid


def test_an_answer_after_the_end_pays_nothing() -> None:
    state = ENV.start(ENV.tasks("train", 1, 0)[0])
    (right,) = ENV.plan(state) or ("",)
    over = ENV.step(state, "wrong").state
    assert over.key != state.key
    step = ENV.step(over, right)
    assert (step.reward, step.success, step.valid, step.outcome) == (0.0, False, False, Outcome.TERMINATED)
    assert ENV.plan(over) is None


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"SelfSearch.top: got 0; need at least 1"):
        SelfSearch(top=0)
    with pytest.raises(TypeError, match="SelfSearch: got a state with a value of type int"):
        ENV.step(State(observation="", key="", value=3), "a")
