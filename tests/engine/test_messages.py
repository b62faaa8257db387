from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inputs import inputs

from bough.context import Context, Full, Renderer, Turn, Window
from bough.context import conversation as chat
from bough.engine.messages import CALL, END, Messages, answered, conversation, offered
from bough.tree import Action, BadCall, Kind, Message, Tool, ToolCall

TEXT = st.text(max_size=8)
SAID = st.tuples(TEXT, TEXT, st.booleans())


def turn(observation: str, action: str, finished: bool = True) -> Turn:
    tokens = (*action.encode(), END) if finished else tuple(action.encode())
    return Turn(observation=observation, action=action, tokens=tokens)


def said(system: str, past: Sequence[Turn], observation: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": system}] if system else []
    for one in past:
        messages += [{"role": "user", "content": one.observation}, {"role": "assistant", "content": one.action}]
    return [*messages, {"role": "user", "content": observation}]


def test_it_is_a_renderer() -> None:
    renderer: Renderer = Messages()
    assert isinstance(renderer, Renderer)
    tokens = renderer.render(chat("Go.", (), "up?"))
    assert tokens == (256, 71, 111, 46, 259, 257, 117, 112, 63, 259, 258)
    assert conversation(tokens) == said("Go.", (), "up?")
    assert renderer.write("lëft") == (*"lëft".encode(), END)
    assert renderer.text(renderer.write("lëft")) == "lëft"
    assert renderer.text("ë".encode()[:1]) == "\ufffd"
    assert renderer.render(chat("", (), "a\ud800")) == (257, 97, 63, 259, 258)


@given(system=TEXT, past=st.lists(SAID, max_size=3), observation=TEXT)
def test_a_conversation_comes_back_as_it_was(system: str, past: list[tuple[str, str, bool]], observation: str) -> None:
    turns = [turn(*one) for one in past]
    assert conversation(Messages().render(chat(system, turns, observation))) == said(system, turns, observation)


@pytest.mark.parametrize(("context", "most"), [(Full(), 9), (Window(turns=1), 1), (Window(turns=2), 3)])
@given(system=TEXT, first=TEXT, past=st.lists(SAID, min_size=1, max_size=4))
def test_contexts_append_and_rebuild(
    context: Context, most: int, system: str, first: str, past: list[tuple[str, str, bool]]
) -> None:
    """Whatever a context chose, the server gets the last turns that it shows, each as it was."""
    renderer = Messages()
    text = renderer.render(chat(system, (), first))
    turns: list[Turn] = []
    observation = first
    for following, action, finished in past:
        turns.append(turn(observation, action, finished))
        extension = context.extend(renderer, inputs(system, turns, following))
        text = extension.tokens if extension.kind is Kind.EDIT else (*text, *turns[-1].tokens, *extension.tokens)
        observation = following
        whole = said("", turns, observation)
        got = conversation(text)
        assert got[:1] == [{"role": "system", "content": system}] or not system
        shown = got[1:] if system else got
        assert shown == whole[-most:]


FIND = Tool(name="find", description="Finds.", schema={"type": "object", "properties": {}})
GOOD = {"id": "a1", "name": "find", "arguments": '{"item": "tea"}'}
BAD = {"id": "a2", "name": "find", "arguments": "{item: tea}"}


def test_tools_calls_and_results_come_back_as_they_were() -> None:
    renderer = Messages()
    asked = Message(role="user", content="tea?")
    written, whole = answered("I look.", [GOOD], 100, ended=True)
    assert whole
    assert renderer.parse(written) == Action(
        text="I look.", calls=(ToolCall(name="find", arguments={"item": "tea"}, call_id="a1"),)
    )
    assert renderer.text(written).startswith("I look.\n{")
    result = Message(role="tool", content="3", call_id="a1")
    messages = (asked, Message(role="assistant", content="", tokens=written), result)
    tokens = renderer.render(messages, (FIND,))
    assert tokens == (*renderer.render((asked,), (FIND,)), *written, *renderer.extend(messages, (FIND,)))
    assert [row["function"]["name"] for row in offered(tokens)] == ["find"]
    assert offered(renderer.render((asked,))) == []
    call = {"id": "a1", "type": "function", "function": {"name": "find", "arguments": '{"item": "tea"}'}}
    assert conversation(tokens) == [
        {"role": "user", "content": "tea?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "content": "3", "tool_call_id": "a1"},
    ]


def test_a_call_without_json_is_text_and_its_result_the_users() -> None:
    renderer = Messages()
    written, _ = answered("", [BAD, GOOD], 200, ended=True)
    bad, _ = renderer.parse(written).calls
    assert isinstance(bad, BadCall)
    assert "need a JSON object" in bad.problem
    results = (Message(role="tool", content="error"), Message(role="tool", content="3", call_id="a1"))
    tokens = renderer.render(
        (Message(role="user", content="?"), Message(role="assistant", content="", tokens=written), *results)
    )
    _, sent, first, second = conversation(tokens)
    assert (sent["content"], len(sent["tool_calls"])) == ("find({item: tea})", 1)
    assert first == {"role": "tool", "content": "3", "tool_call_id": "a1"}
    assert second == {"role": "user", "content": "error"}
    orphan = renderer.render((results[1], Message(role="user", content="?")))
    assert [row["role"] for row in conversation(orphan)] == ["user", "user"]


@pytest.mark.parametrize("arguments", ["[1]", "null", "{", '{"a": NaN}', "[" * 100_000])
def test_arguments_that_are_no_json_object_are_bad(arguments: str) -> None:
    written, _ = answered("", [{**GOOD, "arguments": arguments}], 200_000, ended=True)
    (call,) = Messages().parse(written).calls
    assert isinstance(call, BadCall)


@given(text=TEXT, calls=st.lists(st.tuples(TEXT, st.dictionaries(TEXT, TEXT, max_size=2)), max_size=3))
def test_actions_of_a_teacher_are_read_as_written(text: str, calls: list[tuple[str, dict[str, str]]]) -> None:
    action = Action(text=text, calls=tuple(ToolCall(name=f"f{name}", arguments=given) for name, given in calls))
    assert Messages().parse(Messages().write(action)) == action


@given(text=TEXT, most=st.integers(1, 80))
def test_a_long_answer_is_cut_after_a_whole_character(text: str, most: int) -> None:
    tokens, whole = answered(text, [GOOD], most, ended=True)
    assert len(tokens) <= most
    assert whole == (tokens[-1:] == (END,))
    read = Messages().parse(tokens)
    assert text.startswith(read.text)
    assert [type(call) for call in read.calls] in ([], [BadCall], [ToolCall])
    assert [*map(type, read.calls)] == [ToolCall] or not whole
    assert len(read.calls) == tokens.count(CALL)
