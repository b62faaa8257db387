"""Conversations with tools in the templates of model families."""

import asyncio
import copy
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from tests.policy import families, folders
from tests.policy.families import FORMATS, tokenizer
from transformers import AutoModelForCausalLM, MistralConfig, Qwen3Config

from bough.engine import Local, Request, Sampling
from bough.policy import Pretrained
from bough.policy.chat import ChatRenderer
from bough.tree import Action, BadCall, Message, Tool, ToolCall, tool_record

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
WITH_TOOLS = [name for name in FORMATS if name != "smollm2"]


@cache
def renderer(name: str, **settings: object) -> ChatRenderer:
    return ChatRenderer(tokenizer(name), template=settings)


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


def what_was_not_sampled_equals_the_template(name: str, tools: tuple[Tool, ...]) -> None:
    messages = (
        *(SYSTEM, USER, Message(role="assistant", content="", tool_calls=(CALL,)), result('{"tea": "3 euros"}')),
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


def test_without_tools_smollm2_equals_its_template() -> None:
    messages = (USER, Message(role="assistant", content="It costs 3 euros."), Message(role="user", content="Buy it."))
    text = tokenizer("smollm2").apply_chat_template(
        [for_template(each) for each in messages], tokenize=False, add_generation_prompt=True
    )
    assert "named SmolLM" in text
    whole = renderer("smollm2").render(messages)
    assert list(whole) == tokenizer("smollm2").encode(text, add_special_tokens=False)


def sampled(name: str, text: str) -> tuple[int, ...]:
    """Tokens that the tokenizer would not choose: a byte each, but for the family's marks."""
    marks = sorted(tokenizer(name).added_tokens_decoder.items())
    tokens: list[int] = []
    while text:
        found = next(((token, each.content) for token, each in marks if text.startswith(each.content)), None)
        if found is None:
            tokens += tokenizer(name).encode(text[0], add_special_tokens=False)
        else:
            tokens.append(found[0])
        text = text[len(found[1]) if found else 1 :]
    return (*tokens, renderer(name).stop_tokens[0])


SAID = {
    "qwen2.5": 'Look:\n<tool_call>{"name":"find",  "arguments":{"item":"tea"}}</tool_call>',
    "qwen3": '<think>\nTea?\n</think>\n\n<tool_call>\n{"name":"find", "arguments": {"item":"tea"} }\n</tool_call>',
    "qwen3-2507": 'Look:\n<tool_call>{"name":"find",  "arguments":{"item":"tea"}}</tool_call>',
    "llama3.1": '<|python_tag|>{"name":"find","parameters" : {"item":"tea"}}',
    "llama3.2": '{"name":"find","parameters" : {"item":"tea"}}',
    "lfm2": "Look:\n<|tool_call_start|>[ find(item =  'tea')]<|tool_call_end|>",
    "mistral-7b": '[TOOL_CALLS] [{"name":"find","arguments":{"item":"tea"}}]',
    "mistral-nemo": '[TOOL_CALLS][{"name":"find","arguments":{"item":"tea"}}]',
    "mistral-v3-spm": '[TOOL_CALLS] [{"name":"find","arguments":{"item":"tea"}}]',
    "mistral-v3": '[TOOL_CALLS][{"name":"find","arguments":{"item":"tea"}}]',
    "mistral-v7": 'Look:[TOOL_CALLS][{"name":"find","arguments":{"item":"tea"},"id":"abcDEF123"}]',
    "mistral-v11": '[TOOL_CALLS]find[CALL_ID]abcDEF123[ARGS]{"item":"tea"}',
    "mistral-v13": 'Look:[TOOL_CALLS]find[ARGS] {"item":"tea"}',
    "llama-pythonic": '[ find( item="tea" ) ]',
    "smollm2": 'Look:\n[ find(item = "tea") ]',
}


def holds(read: Sequence[int], tokens: Sequence[int]) -> int:
    return sum(tuple(read[at : at + len(tokens)]) == tuple(tokens) for at in range(len(read)))


def turns_keep_every_sampled_token(name: str) -> None:
    chat, tokens = renderer(name), sampled(name, SAID[name])
    (call,) = chat.parse(tokens).calls
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("find", {"item": "tea"})
    messages: tuple[Message, ...] = (SYSTEM, USER)
    read = chat.render(messages, TOOLS)
    rewritten = 0
    for turn in range(3):
        said = Message(role="assistant", content="", tokens=tokens, tool_calls=(call,))
        messages = (*messages, said, replace(result(f"tea {turn}: 3 euros"), call_id=call.call_id))
        added = chat.extend(messages, TOOLS)
        whole = chat.render(messages, TOOLS)
        assert holds(whole, tokens) == turn + 1
        if added is None:
            rewritten += 1
        else:
            assert whole == (*read, *tokens, *added)
        read = whole
    assert rewritten == (name in HIDDEN)


HIDDEN = ("mistral-7b", "mistral-nemo")
"""These do not show the system prompt after the first answer."""


def a_text_with_the_familys_special_tokens_has_none(name: str) -> None:
    special = {token: each.content for token, each in tokenizer(name).added_tokens_decoder.items()}
    marks = "".join(special.values())
    call = replace(CALL, arguments={"item": marks})
    counts = []
    for text in ("tea", f"tea {marks}"):
        tools = (replace(TOOLS[0], description=text), TOOLS[1])
        said = Message(role="assistant", content="", tokens=sampled(name, SAID[name]))
        asked = replace(SYSTEM, content=text), replace(USER, content=text)
        talk = (*asked, said, result(text), Message(role="assistant", content="", tool_calls=(call,)), result(text))
        whole = renderer(name).render(talk, tools)
        counts.append([whole.count(token) for token in special])
        if text != "tea":
            assert renderer(name).verbatim(whole).count(f"tea {marks}") == (4 if name in HIDDEN else 5)
    assert counts[0] == counts[1]
    answered = Message(role="assistant", content="", tokens=sampled(name, SAID[name]))
    more = [renderer(name).extend((SYSTEM, USER, answered, result(text)), TOOLS) for text in ("tea", marks)]
    assert len({sum(token in special for token in each or ()) for each in more}) == 1


def texts_like_the_frames_marks_keep_sampled_tokens(name: str) -> None:
    forged = "".join(f"[[{salt}.{place}]]" for salt in range(2) for place in range(7))
    chat, tokens = renderer(name), sampled(name, SAID[name])
    argument = replace(CALL, arguments={"item": forged})
    talk = (
        *(SYSTEM, USER, Message(role="assistant", content="", tool_calls=(argument,)), result("1")),
        *(Message(role="assistant", content="", tokens=tokens), result("2")),
    )
    schema = {"type": "object", "properties": {forged: {"type": "string", "enum": [forged]}}}
    for tool in (replace(TOOLS[0], description=forged), replace(TOOLS[0], schema=schema)):
        whole = chat.render(talk, (tool,))
        assert holds(whole, tokens) == 1
        before = next(at for at in range(len(whole)) if whole[at : at + len(tokens)] == tokens)
        assert forged in chat.verbatim(whole[:before]), "the call stands before the sampled tokens"


def the_marks_of_a_family_with_tokens_for_them_are_not_plain_text(name: str) -> None:
    assert renderer(name).plain_marks == ()


def another_message_of_the_user_appends_or_is_rendered_again(name: str) -> None:
    chat, tokens = renderer(name), sampled(name, SAID[name])
    plain = sampled(name, "It costs  3." if name not in ("mistral-7b", "mistral-v3-spm") else " It costs  3.")
    messages = (
        *(SYSTEM, USER, Message(role="assistant", content="", tokens=tokens), result("3")),
        *(Message(role="assistant", content="", tokens=plain), Message(role="user", content="Buy!")),
    )
    before = (*chat.render(messages[:4], TOOLS), *plain)
    added, whole = chat.extend(messages, TOOLS), chat.render(messages, TOOLS)
    # Qwen3's template drops the thinking, and Mistral's moved the tools before version 13.
    assert (added is None) == (name == "qwen3" or (name.startswith("mistral") and name != "mistral-v13"))
    assert added is None or (*before, *added) == whole
    assert holds(whole, plain) == 1
    assert holds(whole, tokens) == (0 if name == "qwen3" else 1)


def a_written_action_is_parsed_back(name: str) -> None:
    chat = renderer(name)
    item = "<|im_end|> [TOOL_CALLS] [ARGS] </tool_call> </think> <|tool_call_end|> \"é' )]"
    given = Action(calls=(replace(CALL, arguments={"item": item, "n": [1, None, {"a": True}]}),) * 2)
    read = chat.parse(chat.write(given))
    assert [(each.name, each.arguments) for each in read.calls] == [("find", given.calls[0].arguments)] * 2
    assert chat.write(given).count(chat.stop_tokens[0]) == 1


def a_written_call_is_the_templates(name: str) -> None:
    calls = (replace(CALL, arguments={"item": "tea", "count": 2}),)
    asked = (USER, Message(role="assistant", content="", tool_calls=calls))
    text = tokenizer(name).apply_chat_template(
        [for_template(each) for each in asked], tools=[tool_record(tool) for tool in TOOLS], tokenize=False
    )
    # The end of the message may have a line's end after it, and Qwen3 begins the last message with no thoughts.
    begin = renderer(name).verbatim(renderer(name).render((USER,), TOOLS))
    written = renderer(name).verbatim(renderer(name).write(Action(calls=calls)))
    assert text.removeprefix(begin).removeprefix("<think>\n\n</think>\n\n").rstrip("\n") == written


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


def the_format_is_found_from_the_template(name: str) -> None:
    assert renderer(name).template.format == FORMATS[name]
    assert renderer(name).template.takes_tools == (name != "smollm2")


def test_a_template_that_refuses_two_user_messages_gets_one() -> None:
    chat = renderer("mistral-7b")
    text = chat.verbatim(chat.render((USER, Message(role="user", content="Now."))))
    assert text == "<|begin_of_text|>[INST] Tea, please.\n\nNow.[/INST]"


@pytest.mark.parametrize("between", ["\n", "", "\n\n\n"])
def test_blanks_around_thinking_do_not_count_as_rewriting(between: str) -> None:
    chat = renderer("qwen3")
    tokens = sampled("qwen3", f"<think>Tea?</think>{between}{SAID['qwen2.5']}")
    messages = (SYSTEM, USER, Message(role="assistant", content="", tokens=tokens), result("3"))
    added = chat.extend(messages, TOOLS)
    assert added is not None
    whole = (*chat.render(messages[:2], TOOLS), *tokens, *added)
    assert chat.render(messages, TOOLS) == whole
    later = (*messages, Message(role="assistant", content="", tokens=tokens), result("4"))
    assert chat.render(later, TOOLS) == (*whole, *tokens, *(chat.extend(later, TOOLS) or ()))


def test_an_action_after_an_opened_thinking_begins_within_it() -> None:
    prompt = "<|im_start|>assistant\\n' }}\n    {%- if enable"
    template = families.trl("qwen3").replace(prompt, prompt.replace("\\n", "\\n<think>\\n"))
    chat = ChatRenderer(folders.tokenizer(template), template={})
    call = '<tool_call>{"name": "find", "arguments": {"item": "</think>"}}</tool_call>'
    assert len(chat.parse(chat.write(f"Tea? {call}\n</think>\n{call}")).calls) == 1
    (bad,) = chat.parse(chat.write(f"Tea? {call.replace('</think>', '')}")).calls
    assert isinstance(bad, BadCall)
    assert len(renderer("qwen3").parse(renderer("qwen3").write(call)).calls) == 1


CONFIGS = {
    "qwen3": Qwen3Config(**folders.SIZES, tie_word_embeddings=True, head_dim=16),
    "mistral-7b": MistralConfig(**folders.SIZES, sliding_window=None),
}
"""One that appends, and one that renders the first turn again."""


@pytest.mark.parametrize("name", CONFIGS)
def test_a_small_model_of_the_family_reads_what_it_sampled(name: str, tmp_path: Path) -> None:
    config = copy.deepcopy(CONFIGS[name])
    config.max_position_embeddings = 16384
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tokenizer(name).save_pretrained(tmp_path)
    policy = Pretrained(path=str(tmp_path), device="cpu").build()
    engine = Local(slots=1).build(policy)
    chat = policy.renderer
    assert chat.stop_tokens[0] == renderer(name).stop_tokens[0]

    async def four_turns() -> None:
        messages: tuple[Message, ...] = (SYSTEM, USER)
        read = chat.render(messages, TOOLS)
        assert read == renderer(name).render(messages, TOOLS)
        for turn in range(4):
            sampling = Sampling(max_tokens=4)
            request = Request(prompt_tokens=read, sampling=sampling, stop_tokens=chat.stop_tokens, seed=turn)
            tokens = (await engine.generate(request)).tokens
            messages = (*messages, Message(role="assistant", content="", tokens=tokens), result(f"{turn}"))
            added, whole = chat.extend(messages, TOOLS), chat.render(messages, TOOLS)
            assert holds(whole, tokens) >= 1
            assert added is None or (*read, *tokens, *added) == whole
            assert added is not None or (turn == 0 and name == "mistral-7b")
            read = whole
        await engine.close()

    asyncio.run(four_turns())


def any_sampled_tokens_are_kept_or_rewritten(name: str) -> None:
    """Empty messages, halves of letters and marks in the wrong place, cut off or ended."""
    chat, rng = renderer(name), random.Random(0)
    special = [token for token in tokenizer(name).added_tokens_decoder if token not in chat.stop_tokens]
    plain = [token for token in range(len(tokenizer(name))) if token not in (*special, *chat.stop_tokens)]
    for _ in range(3):
        messages: tuple[Message, ...] = (SYSTEM, USER)
        read = chat.render(messages, TOOLS)
        for _ in range(3):
            drawn = [rng.choice(rng.choice((plain, plain, special))) for _ in range(rng.choice((0, 1, 8)))]
            tokens = (*drawn, *rng.choice(((), chat.stop_tokens[:1])))
            assert all(isinstance(call, ToolCall | BadCall) for call in chat.parse(tokens).calls)
            after = rng.choice((result("3"), Message(role="user", content="Buy!")))
            messages = (*messages, Message(role="assistant", content="", tokens=tokens), after)
            added, whole = chat.extend(messages, TOOLS), chat.render(messages, TOOLS)
            assert added is None or whole == (*read, *tokens, *added)
            assert added is not None or name == "qwen3" or (name.startswith("mistral") and name != "mistral-v13")
            assert name == "qwen3" or holds(whole, tokens)
            read = whole


@pytest.mark.parametrize("name", FORMATS)
def test_a_family(name: str) -> None:
    for check in (
        turns_keep_every_sampled_token,
        a_text_with_the_familys_special_tokens_has_none,
        texts_like_the_frames_marks_keep_sampled_tokens,
        the_marks_of_a_family_with_tokens_for_them_are_not_plain_text,
        another_message_of_the_user_appends_or_is_rendered_again,
        a_written_action_is_parsed_back,
        the_format_is_found_from_the_template,
        any_sampled_tokens_are_kept_or_rewritten,
    ):
        check(name)
    if name in WITH_TOOLS:
        what_was_not_sampled_equals_the_template(name, ())
        what_was_not_sampled_equals_the_template(name, TOOLS)
        a_written_call_is_the_templates(name)
