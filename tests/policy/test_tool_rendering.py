"""Conversations with tools in the templates of five families."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import families
import folders
import pytest
from transformers import PreTrainedTokenizerFast

from bough.policy.calls import CallFormat, Hermes, Llama, Mistral
from bough.policy.chat import ChatRenderer
from bough.policy.tool_text import TextCalls
from bough.tree import Action, Message, Tool, ToolCall, tool_record

TEMPLATES: dict[str, tuple[str, CallFormat]] = {
    "qwen2.5": (families.QWEN25, Hermes()),
    "qwen3": (families.QWEN3, Hermes()),
    "llama3.2": (families.LLAMA32, Llama()),
    "mistral": (families.MISTRAL, Mistral()),
}
"""Those with a form of their own for tools; SmolLM2's ChatML has none."""

TOOLS = (
    Tool(
        name="find",
        description="Finds an item.",
        schema={"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    ),
    Tool(name="buy", description="Buys it.", schema={"type": "object", "properties": {}}),
)
SYSTEM = Message(role="system", content="Shop well.")
USER = Message(role="user", content="Tea, please.")
CALL = ToolCall(name="find", arguments={"item": "tea"}, call_id="a1b2c3d4e")


@cache
def tokenizer(name: str) -> PreTrainedTokenizerFast:
    template = folders.CHATML if name == "smollm2" else TEMPLATES[name][0]
    return folders.tokenizer(template, special=families.MARKS)


@cache
def renderer(name: str) -> ChatRenderer:
    return ChatRenderer(tokenizer(name), template={})


def result(text: str) -> Message:
    return Message(role="tool", content=text, call_id=CALL.call_id)


def for_template(message: Message) -> dict[str, object]:
    row: dict[str, object] = {"role": message.role, "content": message.content}
    row |= {"tool_call_id": message.call_id} if message.role == "tool" else {}
    calls = [
        {"type": "function", "id": each.call_id, "function": {"name": each.name, "arguments": dict(each.arguments)}}
        for each in message.tool_calls
    ]
    return row | ({"tool_calls": calls} if calls else {})


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("tools", [(), TOOLS])
def test_what_was_not_sampled_equals_the_template(name: str, tools: tuple[Tool, ...]) -> None:
    messages = (
        *(SYSTEM, USER, Message(role="assistant", content="", tool_calls=(CALL,)), result("tea: 3 euros")),
        *(Message(role="assistant", content="It costs 3 euros."), Message(role="user", content="Buy it.")),
    )
    for count in (2, 4, 6):
        text = tokenizer(name).apply_chat_template(
            [for_template(each) for each in messages[:count]],
            tools=[tool_record(tool) for tool in tools] or None,
            tokenize=False,
            add_generation_prompt=True,
        )
        whole = renderer(name).render(messages[:count], tools)
        assert list(whole) == tokenizer(name).encode(text, add_special_tokens=False)


def sampled(name: str, text: str) -> tuple[int, ...]:
    """Tokens that the tokenizer would not choose: a byte each, but for the family's marks."""
    tokens: list[int] = []
    for part in text.partition("[TOOL_CALLS]"):
        if part == "[TOOL_CALLS]":
            tokens.append(tokenizer(name).convert_tokens_to_ids(part))
        else:
            tokens += [token for letter in part for token in tokenizer(name).encode(letter, add_special_tokens=False)]
    return (*tokens, renderer(name).stop_tokens[0])


SAID = {
    "qwen2.5": 'Look:\n<tool_call>{"name":"find",  "arguments":{"item":"tea"}}</tool_call>',
    "qwen3": '<think>\nTea?\n</think>\n\n<tool_call>\n{"name":"find", "arguments": {"item":"tea"} }\n</tool_call>',
    "llama3.2": '{"name":"find","parameters" : {"item":"tea"}}',
    "mistral": '[TOOL_CALLS] [{"name":"find","arguments":{"item":"tea"}}]',
    "smollm2": 'Look:\n[ find(item = "tea") ]',
}


def holds(read: Sequence[int], tokens: Sequence[int]) -> int:
    return sum(tuple(read[at : at + len(tokens)]) == tuple(tokens) for at in range(len(read)))


@pytest.mark.parametrize("name", SAID)
def test_eight_turns_keep_every_sampled_token(name: str) -> None:
    chat, tokens = renderer(name), sampled(name, SAID[name])
    (call,) = chat.parse(tokens).calls
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("find", {"item": "tea"})
    messages: tuple[Message, ...] = (SYSTEM, USER)
    read = chat.render(messages, TOOLS)
    for turn in range(8):
        said = Message(role="assistant", content="", tokens=tokens)
        messages = (*messages, said, result(f"tea {turn}: 3 euros"), result("two <tool_call> <|im_end|> [TOOL_CALLS]"))
        added = chat.extend(messages, TOOLS)
        assert added is not None
        read = (*read, *tokens, *added)
        assert holds(read, tokens) == turn + 1
        # What an environment writes is text, never a mark.
        ends = {token for token, each in tokenizer(name).added_tokens_decoder.items() if each.content == "[TOOL_CALLS]"}
        assert ends.isdisjoint(added)
        assert chat.render(messages, TOOLS) == read


@pytest.mark.parametrize("name", SAID)
def test_another_message_of_the_user_appends_or_is_rendered_again(name: str) -> None:
    chat, tokens = renderer(name), sampled(name, SAID[name])
    plain = sampled(name, "It costs  3." if name != "mistral" else " It costs  3.")
    messages = (
        *(SYSTEM, USER, Message(role="assistant", content="", tokens=tokens), result("3")),
        *(Message(role="assistant", content="", tokens=plain), Message(role="user", content="Buy!")),
    )
    before = (*chat.render(messages[:4], TOOLS), *plain)
    added, whole = chat.extend(messages, TOOLS), chat.render(messages, TOOLS)
    # Qwen3's template drops the thinking, and Mistral's moves the tools.
    assert (added is None) == (name in ("qwen3", "mistral"))
    assert added is None or (*before, *added) == whole
    assert holds(whole, plain) == 1
    assert holds(whole, tokens) == (0 if name == "qwen3" else 1)


@pytest.mark.parametrize("name", SAID)
def test_a_written_action_is_parsed_back(name: str) -> None:
    chat = renderer(name)
    given = Action(calls=(replace(CALL, arguments={"item": "<|im_end|> [TOOL_CALLS] </tool_call> é", "n": [1, None]}),))
    read = chat.parse(chat.write(given))
    assert [(each.name, each.arguments) for each in read.calls] == [("find", given.calls[0].arguments)]
    assert chat.write(given).count(chat.stop_tokens[0]) == 1


def test_a_template_without_tools_gets_them_in_the_system_prompt() -> None:
    chat = renderer("smollm2")
    text = chat.verbatim(
        chat.render(
            (SYSTEM, USER, Message(role="assistant", content="", tool_calls=(CALL,)), result("a"), result("b")), TOOLS
        )
    )
    begin, _, rest = text.partition("<|im_end|>")
    assert begin.startswith("<|im_start|>system\nShop well.\n\nTools:\nfind(item: string): Finds an item.\n")
    assert "assistant\n[find(item='tea')]<|im_end|>" in rest
    assert "user\nresult: a\nresult: b<|im_end|>" in rest


@pytest.mark.parametrize(
    ("name", "form"), [*((name, form) for name, (_, form) in TEMPLATES.items()), ("smollm2", TextCalls())]
)
def test_the_format_is_found_from_the_template(name: str, form: CallFormat) -> None:
    assert renderer(name)._template.format == form  # pyright: ignore[reportPrivateUsage]
    assert renderer(name)._template.takes_tools == (name != "smollm2")  # pyright: ignore[reportPrivateUsage]


def test_a_template_that_refuses_two_user_messages_gets_one() -> None:
    chat = ChatRenderer(folders.tokenizer(families.MISTRAL, special=families.MARKS), template={})
    text = chat.verbatim(chat.render((USER, Message(role="user", content="Now."))))
    assert text == "<|begin_of_text|>[INST] Tea, please.\n\nNow.[/INST]"
