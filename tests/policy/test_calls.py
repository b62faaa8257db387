"""Calls of tools as model families write them."""

import random

import pytest

from bough.policy.calls import CallFormat, Hermes, Llama, Mistral, Pythonic
from bough.tree import Action, BadCall, ToolCall

FORMATS: tuple[CallFormat, ...] = (Hermes(), Llama(), Mistral(), Pythonic())
ARGUMENTS = {"item": 'a "b" </tool_call>\n]', "count": 2, "exact": True, "tags": ["x", None, 1.5], "at": {"k": "é"}}


@pytest.mark.parametrize("form", FORMATS)
def test_several_calls_after_a_text_come_back(form: CallFormat) -> None:
    calls = tuple(ToolCall(name=name, arguments=ARGUMENTS, call_id="") for name in ("find", "buy"))
    read = form.parse(form.write(Action(text="I look.", calls=calls)))
    assert read.text == "I look."
    assert [(call.name, call.arguments) for call in read.calls] == [("find", ARGUMENTS), ("buy", ARGUMENTS)]


@pytest.mark.parametrize("form", FORMATS)
def test_text_and_thinking_have_no_calls(form: CallFormat) -> None:
    assert form.parse(" The price is [3] {euros}. ") == Action(text="The price is [3] {euros}.")
    written = form.write(Action(calls=(ToolCall(name="find", arguments={}),)))
    thinking = f"<think>\n{written}\n</think>\n\n"
    assert form.parse(f"{thinking}Done.") == Action(text=f"{thinking}Done.")
    assert form.parse(f"<think>\n{written}").calls == ()
    assert len(form.parse(thinking + written).calls) == 1


MALFORMED = [
    (Hermes(), '<tool_call>{"name": "find", "arguments": {}', "no JSON: Expecting ',' delimiter"),
    (Hermes(), '<tool_call>{"name": "find", "arguments": {}}', "no </tool_call>"),
    (Hermes(), '<tool_call>{"name": "find", "arguments": {}} go</tool_call>', "need the JSON alone"),
    (Hermes(), '<tool_call>["find"]</tool_call>', "no JSON object"),
    (Hermes(), '<tool_call>{"arguments": {}}</tool_call>', "without the name"),
    (Hermes(), '<tool_call>{"name": "find", "arguments": "tea"}</tool_call>', '"arguments" that is no JSON object'),
    (Hermes(), '<tool_call>{"name": "find", "arguments": {"n": NaN}}</tool_call>', "Out of range float"),
    (Hermes(), '<tool_call>{"name": "find", "arguments": {"n": "\\ud800"}}</tool_call>', "surrogates not allowed"),
    (Llama(), '{"name": "find", "parameters": [1]}', '"parameters" that is no JSON object'),
    (Llama(), '<|python_tag|>find.call(item="tea")', "no JSON"),
    (Mistral(), '[TOOL_CALLS] {"name": "find", "arguments": {}}', "no list of calls"),
    (Mistral(), "[TOOL_CALLS] [1]", "no JSON object"),
    (Pythonic(), '[find("tea")]', "arguments without names"),
    (Pythonic(), "[find(item=open('x'))]", "no text, number"),
    (Pythonic(), "[find(item={1, 2})]", "no text, number"),
    (Pythonic(), "[find(item=", "no Python list"),
]


@pytest.mark.parametrize(("form", "text", "problem"), MALFORMED)
def test_a_malformed_call_says_what_to_fix(form: CallFormat, text: str, problem: str) -> None:
    (bad,) = form.parse(text).calls
    assert isinstance(bad, BadCall)
    assert problem in bad.problem
    assert "\n" not in bad.problem


def test_a_bad_call_leaves_the_calls_beside_it() -> None:
    good = '<tool_call>{"name": "find", "arguments": {}}</tool_call>'
    read = Hermes().parse(f"a {good} b <tool_call>find</tool_call> c {good}")
    assert [type(call) for call in read.calls] == [ToolCall, BadCall, ToolCall]
    assert read.text.split() == ["a", "b", "c"]
    assert [type(call) for call in Mistral().parse('[TOOL_CALLS] [{"name": "a"}, {"nome": "b"}]').calls] == [
        ToolCall,
        BadCall,
    ]


def test_mistrals_ids_have_nine_characters() -> None:
    calls = ('{"name": "a", "arguments": {}, "id": "abcDEF123"}', '{"name": "a", "arguments": {}, "id": "call_1"}')
    text = f"[TOOL_CALLS] [{', '.join(calls)}]"
    first, second = Mistral().parse(text).calls
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.call_id == "abcDEF123"
    assert len(second.call_id) == 9
    assert second.call_id.isalnum()
    assert Mistral().parse(text).calls[1] == second


@pytest.mark.parametrize("form", FORMATS)
def test_mutated_calls_are_typed(form: CallFormat) -> None:
    """2,500 mutations for each of the four formats: no crash, and what is left is a call, a bad call or text."""
    rng = random.Random(0)
    calls = (ToolCall(name="find", arguments=ARGUMENTS), ToolCall(name="shop.buy", arguments={"n": 1}))
    whole = form.write(Action(text="I look.", calls=calls))
    pieces = [*'{}[]()"\\\0\ud800,:=é\n', "9" * 5000, "1e999", "NaN", "[" * 3000, "**a", "lambda: 0"]
    pieces += ["<tool_call>", "</tool_call>", "</think>", "[TOOL_CALLS]", "<|python_tag|>"]
    kinds: dict[type, int] = {}
    for _ in range(2500):
        text = whole
        for _ in range(rng.randint(1, 4)):
            begin = rng.randrange(len(text) + 1)
            end = min(len(text), begin + rng.choice((0, 0, 1, 1, 5, 40)))
            text = text[:begin] + rng.choice(["", *pieces]) + text[end:]
        action = form.parse(text)
        assert isinstance(action.text, str)
        for call in action.calls:
            kinds[type(call)] = kinds.get(type(call), 0) + 1
            if isinstance(call, BadCall):
                assert call.problem
            else:
                assert call.name
                assert form.parse(form.write(Action(calls=(call,)))).calls[0] == call
    assert min(kinds[ToolCall], kinds[BadCall]) > 100
