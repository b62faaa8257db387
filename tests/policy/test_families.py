"""The formats of model families: found from templates, written and parsed back, and rendered as the template does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from scripts.templates import ACTIONS, lost_actions, mutated, same, unequal
from tests.policy.family_templates import TEMPLATES, family_tokenizer

from bough.context import Plain, ThinkingCalls, ToolCalls, as_written, parse_tokens
from bough.policy import (
    ArgValues,
    CallFormat,
    DeepSeek,
    Harmony,
    Hermes,
    Invoke,
    JsonList,
    Kimi,
    PlainFormat,
    Pythonic,
    ToolCode,
    XmlParameters,
)
from bough.policy.calls import FAMILIES
from bough.policy.chat import ChatRenderer
from bough.policy.tool_text import TextCalls
from bough.tree import Action, BadCall, Message, Tool, ToolCall

FORMATS: dict[str, CallFormat] = {
    "Qwen3-Coder": XmlParameters(),
    "Qwen3.5": XmlParameters(),
    "GLM-4.5": ArgValues(),
    "GLM, opened": ArgValues(),
    "MiniMax-M2": Invoke(start="<minimax:tool_call>", end="</minimax:tool_call>"),
    "Kimi-K2": Kimi(),
    "DeepSeek V3.1": DeepSeek(),
    "DeepSeek R1": DeepSeek(fenced=True),
    "Nemotron Nano 2": JsonList(start="<TOOLCALL>", end="</TOOLCALL>"),
    "Granite 3": JsonList(start="<|tool_call|>"),
    "Phi-4-mini": JsonList(start="<|tool_call|>", end="<|/tool_call|>", before="", single=True),
    "LFM2": Pythonic(start="<|tool_call_start|>", end="<|tool_call_end|>"),
    "gpt-oss": Harmony(),
    "Gemma 3": TextCalls(python=ToolCode()),
}
FIND = Tool(
    name="find",
    description="Finds an item.",
    schema={"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}},
)
CALL = ToolCall(name="find", arguments={"item": "tea", "count": 2})


OTHERWISE = ("GLM, opened", "MiniMax-M2", "DeepSeek R1")
"""These templates write thinking otherwise than it began in the prompt, so each turn is an edit."""


@cache
def renderer(name: str) -> ChatRenderer:
    return ChatRenderer(family_tokenizer(name), template={})


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_family_is_found_and_its_actions_come_back(name: str) -> None:
    chat = renderer(name)
    assert chat._template.format == FORMATS[name]  # pyright: ignore[reportPrivateUsage]
    assert lost_actions(chat) == []
    assert unequal(chat, family_tokenizer(name)) == 0
    kinds, silent = mutated(chat, 300)
    assert silent == 0
    assert kinds["call"] > 20
    assert kinds["bad"] > 5


@pytest.mark.parametrize("name", TEMPLATES)
def test_sampled_tokens_stay_over_four_turns(name: str) -> None:
    """What the engine read and sampled is spliced, also where thinking was opened by the prompt or is empty."""
    chat = renderer(name)
    messages: tuple[Message, ...] = (Message(role="user", content="Tea, please."),)
    read, whole = chat.render(messages, (FIND,)), ()
    for turn in range(4):
        tokens = chat.write(Action(text="<think>\nTea?\n</think>\n\n" if turn % 2 else "", calls=(CALL,)))
        messages = (
            *messages,
            Message(role="assistant", content="", tokens=tokens),
            Message(role="tool", content=f"{turn} euros", call_id="functions.find:0" if name == "Kimi-K2" else ""),
        )
        added, whole = chat.extend(messages, (FIND,)), chat.render(messages, (FIND,))
        if added is not None:
            assert whole == (*read, *tokens, *added)
            assert whole[len(read) : len(read) + len(tokens)] == tokens
        else:
            assert name in OTHERWISE
        read = whole


@pytest.mark.parametrize("name", TEMPLATES)
def test_marks_in_values_stay_text(name: str) -> None:
    """Texts of the family's tokens in arguments become no tokens, and come back."""
    chat, made = renderer(name), family_tokenizer(name)
    marks = [each.content for each in made.added_tokens_decoder.values()]
    given = Action(calls=(ToolCall(name="find", arguments={"item": " ".join(marks), "at": {"k": marks}}),))
    written = chat.write(given)
    assert same(chat.parse(written), given)
    plain = chat.write(Action(calls=(ToolCall(name="find", arguments={"item": "x", "at": {"k": ["x"]}}),)))
    special = set(made.added_tokens_decoder)
    assert sum(token in special for token in written) == sum(token in special for token in plain)


@pytest.mark.parametrize("name", ["Qwen3.5", "DeepSeek R1", "MiniMax-M2", "GLM, opened"])
def test_an_action_without_thinking_ends_the_thinking_that_the_prompt_opened(name: str) -> None:
    chat = renderer(name)
    assert "</think>" in chat.verbatim(chat.write(Action(calls=(CALL,))))
    assert chat.parse(chat.write(Action(calls=(CALL,)))) == Action(calls=(CALL,))
    assert chat.parse_text("Tea?\n</think>\n\nIt is tea.").text.startswith("<think>Tea?\n</think>")
    within = chat.parse_text(f"Tea? {FORMATS[name].write(Action(calls=(CALL,)))}")
    (bad,) = within.calls
    assert isinstance(bad, BadCall)
    assert "thinking that does not end" in bad.problem


@pytest.mark.parametrize("form", [XmlParameters(), ArgValues(), FORMATS["MiniMax-M2"]])
def test_the_schema_tells_a_text_from_a_number(form: CallFormat) -> None:
    written = form.write(Action(calls=(ToolCall(name="find", arguments={"item": 7, "count": 7}),)))
    (call,) = form.parse(written, 0, (FIND,)).calls
    assert isinstance(call, ToolCall)
    assert call.arguments == {"item": "7", "count": 7}
    quoted = form.write(Action(calls=(ToolCall(name="find", arguments={"item": "7"}),)))
    assert form.parse(quoted, 0, (FIND,)).calls == form.parse(quoted).calls


def test_a_call_of_another_family_is_bad_and_names_it() -> None:
    chat = renderer("Qwen3-Coder")
    (bad,) = chat.parse_text('Look. [TOOL_CALLS]find[ARGS]{"item": "tea"}').calls
    assert isinstance(bad, BadCall)
    assert bad.family.startswith("Mistral")
    assert "<function=NAME>" in bad.problem
    assert chat.parse_text("<think>[TOOL_CALLS]</think>Done.").calls == ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shouted(PlainFormat):
    """A format of one's own: `CALL NAME item`."""

    @property
    def marks(self) -> tuple[str, ...]:
        return ("CALL ",)

    def parse(self, text: str, begin: int = 0, tools: object = ()) -> Action:
        del tools
        said, found, rest = text[begin:].partition("CALL ")
        name, _, item = rest.partition(" ")
        calls = (ToolCall(name=name, arguments={"item": item}),) if found else ()
        return Action(text=said.strip(), calls=calls)

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        good = [call for call in action.calls if isinstance(call, ToolCall)]
        calls = [hide(f"CALL {call.name} {next(iter(call.arguments.values()))}") for call in good]
        return "\n".join([action.text, *calls] if action.text else calls)


def test_a_format_of_ones_own_is_used_and_named() -> None:
    chat = ChatRenderer(family_tokenizer("Granite 3"), template={}, call_format=Shouted())
    given = Action(text="Look.", calls=(ToolCall(name="find", arguments={"item": "tea"}),))
    assert chat.parse(chat.write(given)) == given
    assert "policy.call_format" in chat.call_format
    asked = Message(role="assistant", content="", tool_calls=given.calls)
    text = chat.verbatim(
        chat.render((Message(role="user", content="a"), asked, Message(role="tool", content="b")), (FIND,))
    )
    assert "CALL find tea<|im_end|>" in text


def test_the_format_in_use_and_its_place_are_named() -> None:
    assert renderer("Qwen3-Coder").call_format.startswith(
        "the format of Qwen3-Coder and Qwen3.5: the chat template writes"
    )
    assert "its marks are in the chat template" in renderer("Granite 3").call_format
    plain = ChatRenderer(family_tokenizer("Granite 3"), template={"unused": 1})
    assert plain.call_format == renderer("Granite 3").call_format
    unknown = family_tokenizer("Granite 3")
    unknown.chat_template = TEMPLATES["Granite 3"].replace("<|start_of_role|>", "")
    assert ChatRenderer(unknown, template={}).call_format.startswith("text: the chat template has no calls, or their")


def test_tools_are_described_in_the_form_of_a_family_whose_template_has_none() -> None:
    text = renderer("Gemma 3").verbatim(renderer("Gemma 3").render((Message(role="user", content="Tea."),), (FIND,)))
    assert "find(item?: string, count?: integer)" in text
    assert "```tool_code\nTOOL(ARGUMENT='VALUE')\n```" in text


def test_the_table_has_no_two_formats_alike() -> None:
    forms = [each.form for each in FAMILIES]
    assert all(one not in forms[place + 1 :] for place, one in enumerate(forms))
    # Each is found by what it writes.
    for each in forms:
        good = [action for action in ACTIONS.values() if action.calls]
        assert all(same(each.parse(_ended(each, each.write(action))), action) for action in good), each


def _ended(form: CallFormat, text: str) -> str:
    return next((text.removesuffix(stop) for stop in form.stops if text.endswith(stop)), text)


def test_calls_of_hermes_in_xml_are_parsed() -> None:
    written = Hermes().write(Action(calls=(CALL,)))
    assert XmlParameters().parse(written).calls == (CALL,)
    odd = replace(CALL, arguments={"a>b": "x"})
    assert XmlParameters().parse(XmlParameters().write(Action(calls=(odd,)))).calls == (odd,)


def test_a_demonstrated_answer_is_no_thinking() -> None:
    """A teacher's plan may end with a text; a parser of calls has it after the thinking that the prompt opens."""
    chat = renderer("Qwen3.5")
    written = chat.write(as_written(ToolCalls(), "It costs 3 euros."))
    assert parse_tokens(ToolCalls(), chat, written).action == Action(text="It costs 3 euros.")
    assert as_written(Plain(), "left") == "left"
    thought = chat.write(Action(text="<think>Tea?</think>", calls=(CALL,)))
    found = parse_tokens(ThinkingCalls(), chat, thought, (FIND,))
    first, last = found.spans["thought"]
    assert found.text[first:last] == "Tea?"
