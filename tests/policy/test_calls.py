"""Calls of tools as model families write them."""

import pytest

from bough.policy.calls import CallFormat, Hermes, Llama, Mistral, Pythonic
from bough.tree import Action, BadCall, ToolCall

FORMATS: tuple[CallFormat, ...] = (
    *(Hermes(), Llama(), Mistral(), Mistral(named=True), Mistral(named=True, ids=True)),
    *(Pythonic(), Pythonic(start="<|tool_call_start|>", end="<|tool_call_end|>")),
)
ARGUMENTS = {"item": 'a "b" </tool_call>\n]', "count": 2, "exact": True, "tags": ["x", None, 1.5], "at": {"k": "é"}}


def several_calls_after_a_text_come_back(call_format: CallFormat) -> None:
    calls = tuple(ToolCall(name=name, arguments=ARGUMENTS, call_id="") for name in ("find", "buy"))
    read = call_format.parse(call_format.write(Action(text="I look.", calls=calls)))
    assert read.text == "I look."
    assert [(call.name, call.arguments) for call in read.calls] == [("find", ARGUMENTS), ("buy", ARGUMENTS)]


def text_and_thinking_have_no_calls(call_format: CallFormat) -> None:
    assert call_format.parse(" The price is [3] {euros}. ") == Action(text="The price is [3] {euros}.")
    written = call_format.write(Action(calls=(ToolCall(name="find", arguments={}),)))
    thinking = f"<think>\n{written}\n</think>\n\n"
    assert call_format.parse(f"{thinking}Done.") == Action(text=f"{thinking}Done.")
    assert call_format.parse(f"<think>\n{written}").calls == ()
    assert len(call_format.parse(thinking + written).calls) == 1


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
    # A key twice, values that fail later, and arguments in a text.
    (Hermes(), '<tool_call>{"name": "find", "name": "buy"}</tool_call>', 'the key "name" twice'),
    (Hermes(), '<tool_call>{"name": "find", "args": {"item": "tea"}}</tool_call>', "a call with name, args"),
    (
        Hermes(),
        '<tool_call>{"name": "a", "arguments": {}, "parameters": {}}</tool_call>',
        "arguments, parameters",
    ),
    (Hermes(), '<tool_call>{"name": "a", "arguments": "{\\"item\\": 1}"}</tool_call>', "that is no JSON object"),
    (Hermes(), f'<tool_call>{{"name": "a", "arguments": {{"n": {"9" * 400}}}}}</tool_call>', "than 300 digits"),
    (Hermes(), f'<tool_call>{{"name": "a", "arguments": {{"n": {"9" * 5000}}}}}</tool_call>', "than 300 digits"),
    (Hermes(), f'<tool_call>{{"name": "a", "arguments": {{"n": {"[" * 200 + "]" * 200}}}}}</tool_call>', "levels"),
    (Hermes(), '<tool_call>{"name": "a", "arguments": {"n": 1e999}}</tool_call>', "Out of range float"),
    (Llama(), '{"name": "a", "parameters": {"n": -Infinity}}', "Out of range float"),
    (Mistral(), '[TOOL_CALLS] [{"name": "find"}', "no ] after the calls"),
    (Mistral(), "[TOOL_CALLS] []", "no JSON"),
    (Mistral(), "[TOOL_CALLS]find[ARGS]tea", "no JSON"),
    (Mistral(), '[TOOL_CALLS]find[ARGS]["tea"]', "no JSON object"),
    (Mistral(), '[TOOL_CALLS]find[ARGS]{"item": "te', "no JSON"),
    (Pythonic(), "[find(item=1, item=2)]", "an argument twice"),
    (Pythonic(), "[find(item={'a': 1, 'a': 2})]", "no text, number"),
    (Pythonic(), f"[find(item={'9' * 400})]", "no text, number"),
    (Pythonic(), f"[find(item={'[' * 200 + ']' * 200})]", "no text, number"),
    (Pythonic(), "[find(item=1e999)]", "no text, number"),
    (Pythonic(), "[find(item='tea)]", "no Python list"),
    (Pythonic(), "[find(item=[1)]", "no Python list"),
    (Pythonic(start="<|tool_call_start|>", end="<|tool_call_end|>"), "<|tool_call_start|>find()", "no Python list"),
]


def test_a_malformed_call_says_what_to_fix() -> None:
    for call_format, text, problem in MALFORMED:
        (bad,) = call_format.parse(text).calls
        assert isinstance(bad, BadCall), text
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


def thinking_anywhere_has_no_calls(call_format: CallFormat) -> None:
    written = call_format.write(Action(calls=(ToolCall(name="find", arguments={"item": "</think>"}),)))
    for text in (written, f"<think>One.</think>\n{written}", f"<think>{written}\nOne.</think>{written}"):
        found = call_format.parse(text).calls
        assert [call.arguments for call in found if isinstance(call, ToolCall)] == [{"item": "</think>"}]
    thinking = f"<think>One.</think> Two.\n<think>{written.replace('</think>', '')}"
    assert call_format.parse(thinking) == Action(text=thinking)
    assert call_format.parse(f"One.\n{written}", begin=len(f"One.\n{written}")).calls == ()


def text_after_a_call_is_text(call_format: CallFormat) -> None:
    written = call_format.write(Action(text="I look.", calls=(ToolCall(name="find", arguments={"item": "tea"}),)))
    read = call_format.parse(f"{written}\nThen [1] I buy {{it}}.")
    assert [type(call) for call in read.calls] == [ToolCall]
    assert read.text.split() == ["I", "look.", "Then", "[1]", "I", "buy", "{it}."]


def a_call_cut_at_the_limit_leaves_the_one_before(call_format: CallFormat) -> None:
    whole = call_format.write(Action(calls=tuple(ToolCall(name=name, arguments=ARGUMENTS) for name in ("find", "buy"))))
    begin = whole.rindex("buy")
    read = call_format.parse(whole[: begin + 40])
    # A list of Python calls is one expression.
    kinds = [BadCall] if isinstance(call_format, Pythonic) else [ToolCall, BadCall]
    assert [type(call) for call in read.calls] == kinds
    for end in range(begin):
        assert "buy" not in [call.name for call in call_format.parse(whole[:end]).calls if isinstance(call, ToolCall)]


ONE_OF_TWO = [
    (Llama(), '{"name": "find", "parameters": {}}; {"name": "find", "parameters": {]'),
    (Llama(), '{"name": "find"}\n<|python_tag|>{"nome": "find"}'),
    (Mistral(), '[TOOL_CALLS] [{"name": "find", "arguments": {}}, {"name": ]'),
    (Mistral(), "[TOOL_CALLS]find[ARGS]{}[TOOL_CALLS]find[ARGS]{]"),
    (Pythonic(), "[find(), find('tea')]"),
    (Pythonic(), "[find()]\nand\n[find(]"),
]


def test_one_malformed_call_of_two() -> None:
    for call_format, text in ONE_OF_TWO:
        assert [type(call) for call in call_format.parse(text).calls] == [ToolCall, BadCall], text


def test_a_malformed_named_call_leaves_the_one_after() -> None:
    first, second = Mistral().parse("[TOOL_CALLS]find[ARGS]{][TOOL_CALLS]find[ARGS]{}").calls
    assert (type(first), type(second)) == (BadCall, ToolCall)


def test_arguments_under_the_other_familys_name() -> None:
    (call,) = Llama().parse('{"name": "find", "arguments": {"item": "tea"}}').calls
    assert call == ToolCall(name="find", arguments={"item": "tea"})
    (call,) = Hermes().parse('<tool_call>{"name": "find", "parameters": {"item": "tea"}}</tool_call>').calls
    assert call == ToolCall(name="find", arguments={"item": "tea"})
    (call,) = Hermes().parse('<tool_call>{"type": "function", "name": "wait"}</tool_call>').calls
    assert call == ToolCall(name="wait", arguments={})


PYTHON = r"""[get-item.by/name(a='it\'s', b="x", c=[true, null], d=[True, None], e=-1.5, class={'k': (1, 2)},
f='''a
"b')]''')]"""


def test_values_in_a_python_list_are_pythons_or_jsons() -> None:
    (call,) = Pythonic().parse(PYTHON).calls
    assert isinstance(call, ToolCall)
    assert call.name == "get-item.by/name"
    given = {"a": "it's", "b": "x", "c": [True, None], "d": [True, None], "e": -1.5, "class": {"k": [1, 2]}}
    assert call.arguments == {**given, "f": "a\n\"b')]"}


def test_mistrals_named_calls_have_ids_where_they_are_given() -> None:
    text = '[TOOL_CALLS]find[CALL_ID]abcDEF123[ARGS]{"item": "tea"}'
    first, second = Mistral(named=True).parse(f"{text}[TOOL_CALLS]buy[ARGS]{{}}").calls
    assert first == ToolCall(name="find", arguments={"item": "tea"}, call_id="abcDEF123")
    assert second == ToolCall(name="buy", arguments={})
    assert Mistral(named=True, ids=True).write(Action(calls=(first,))) == text


@pytest.mark.parametrize("call_format", FORMATS)
def test_a_format(call_format: CallFormat) -> None:
    for check in (
        several_calls_after_a_text_come_back,
        text_and_thinking_have_no_calls,
        thinking_anywhere_has_no_calls,
        text_after_a_call_is_text,
        a_call_cut_at_the_limit_leaves_the_one_before,
    ):
        check(call_format)
