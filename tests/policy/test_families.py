"""The formats of model families: found from templates, written and parsed back, and rendered as the template does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from scripts.mutated_calls import family_outcomes, outcomes
from scripts.templates import ACTIONS, lost_actions, same, unequal
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
from bough.tree.thinking import ThinkingState

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

OPENED = ("Qwen3.5", "DeepSeek R1", "MiniMax-M2", "GLM, opened")
"""The prompts of these templates end within thinking."""

OTHERWISE = ("GLM, opened", "MiniMax-M2", "DeepSeek R1")
"""These templates write thinking otherwise than it began in the prompt, so each turn is an edit."""


@cache
def renderer(name: str) -> ChatRenderer:
    return ChatRenderer(family_tokenizer(name), template={})


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_family(name: str) -> None:
    chat = renderer(name)
    assert chat.template.format == FORMATS[name]
    # Every kind of action, also with thinking that is open, closed, empty or absent.
    assert lost_actions(chat) == []
    assert unequal(chat, family_tokenizer(name)) == 0
    found = outcomes(chat, 24)
    assert (found["silent"], found["changed"]) == (0, 0)
    assert min(found["call"], found["bad"]) > 0
    sampled_tokens_stay_over_four_turns(name)
    marks_in_values_stay_text(name)
    if name in OPENED:
        thinking_that_the_prompt_opened_is_ended(name)


def sampled_tokens_stay_over_four_turns(name: str) -> None:
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


def marks_in_values_stay_text(name: str) -> None:
    """Texts of the family's tokens in arguments become no tokens, and come back."""
    chat, made = renderer(name), family_tokenizer(name)
    marks = [each.content for each in made.added_tokens_decoder.values()]
    given = Action(calls=(ToolCall(name="find", arguments={"item": " ".join(marks), "at": {"k": marks}}),))
    written = chat.write(given)
    assert same(chat.parse(written), given)
    plain = chat.write(Action(calls=(ToolCall(name="find", arguments={"item": "x", "at": {"k": ["x"]}}),)))
    special = set(made.added_tokens_decoder)
    assert sum(token in special for token in written) == sum(token in special for token in plain)


def thinking_that_the_prompt_opened_is_ended(name: str) -> None:
    chat = renderer(name)
    assert chat.prompt_thinking is ThinkingState.OPEN
    assert "</think>" in chat.verbatim(chat.write(Action(calls=(CALL,))))
    assert chat.parse(chat.write(Action(calls=(CALL,)))) == Action(calls=(CALL,))
    assert chat.parse_text("Tea?\n</think>\n\nIt is tea.").text.startswith("<think>Tea?\n</think>")
    (bad,) = chat.parse_text(f"Tea? {FORMATS[name].write(Action(calls=(CALL,)))}").calls
    assert isinstance(bad, BadCall)
    assert "thinking that does not end" in bad.problem


def test_the_table_has_no_two_formats_alike_and_each_parses_what_it_writes() -> None:
    call_formats = [each.call_format for each in FAMILIES]
    assert all(one not in call_formats[place + 1 :] for place, one in enumerate(call_formats))
    for call_format in call_formats:
        for action in ACTIONS.values():
            text = call_format.write(action)
            text = next((text.removesuffix(stop) for stop in call_format.stops if text.endswith(stop)), text)
            assert same(call_format.parse(text), action), call_format
        found = family_outcomes(call_format, 8)
        assert (found["silent"], found["changed"]) == (0, 0), call_format


def test_the_schema_tells_a_text_from_a_number() -> None:
    for call_format in (XmlParameters(), ArgValues(), FORMATS["MiniMax-M2"]):
        written = call_format.write(Action(calls=(ToolCall(name="find", arguments={"item": 7, "count": 7}),)))
        (call,) = call_format.parse(written, 0, (FIND,)).calls
        assert isinstance(call, ToolCall)
        assert call.arguments == {"item": "7", "count": 7}
        quoted = call_format.write(Action(calls=(ToolCall(name="find", arguments={"item": "7"}),)))
        assert call_format.parse(quoted, 0, (FIND,)).calls == call_format.parse(quoted).calls


def test_a_lost_call_is_bad_and_names_what_is_wrong() -> None:
    chat = renderer("Qwen3-Coder")
    for text, family, begin in (
        ('Look. [TOOL_CALLS]find[ARGS]{"item": "tea"}', "Mistral", "[TOOL"),
        ('Look.\n{"name": "find", "parameters": {"item": "tea"}}', "Llama 3", '{"name"'),
        ("<think>So.</think>\n[find(item='tea')]", "Llama 3.2", "[find"),
        ("Look. <parameter=item>tea</parameter>", "", "</parameter>"),
    ):
        (bad,) = chat.parse_text(text, (FIND,)).calls
        assert isinstance(bad, BadCall)
        assert bad.family.startswith(family)
        assert bad.text.startswith(begin)
        assert "<function=NAME>" in bad.problem
    for text in ("<think>[TOOL_CALLS]</think>Done.", '{"name": "other", "parameters": {}}', "[see(item='tea')]"):
        assert chat.parse_text(text, (FIND,)).calls == ()


def test_a_value_that_does_not_end_takes_no_call_after_it() -> None:
    for call_format in (XmlParameters(), ArgValues(), FORMATS["MiniMax-M2"]):
        text = call_format.write(Action(calls=(replace(CALL, arguments={"item": "tea"}), CALL)))
        end = "</parameter>" if "</parameter>" in text else "</arg_value>"
        found = call_format.parse(text.replace(end, "", 1)).calls
        assert isinstance(found[0], BadCall), call_format
        assert found[1:] in ((), (CALL,)), call_format


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


def test_calls_of_hermes_in_xml_are_parsed() -> None:
    written = Hermes().write(Action(calls=(CALL,)))
    assert XmlParameters().parse(written).calls == (CALL,)
    odd = replace(CALL, arguments={"a>b": "x"})
    for call_format in (
        XmlParameters(),
        XmlParameters(start="<seed:tool_call>", end="</seed:tool_call>"),
        ArgValues(suffix=":o"),
    ):
        assert call_format.parse(call_format.write(Action(calls=(odd,)))).calls == (odd,)


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


def test_parts_of_a_message_have_the_separator_of_the_template() -> None:
    loop = "{%- for part in m.content -%}{{ part.text }}{{ ' | ' if not loop.last }}{%- endfor -%}"
    made = family_tokenizer("Qwen3-Coder")
    made.chat_template = (
        "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{%- if m.content is string -%}{{ m.content }}{%- else -%}"
        + loop
        + "{%- endif -%}<|im_end|>{%- endfor -%}{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
    )
    assert ChatRenderer(made, template={}).part_separator == " | "
    assert renderer("Qwen3-Coder").part_separator == "\n", "the template takes texts alone"
