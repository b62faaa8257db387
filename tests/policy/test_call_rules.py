"""What a grammar of calls allows: what the format writes of calls that the tools take, and nothing else."""

from collections.abc import Callable
from functools import cache
from itertools import product

import pytest

from bough.engine.grammar_matcher import GrammarMatchers
from bough.policy.calls import FAMILIES, Hermes, RestrictedFormat, action_grammar
from bough.policy.tool_text import TextCalls
from bough.policy.vocabulary import small_tokenizer
from bough.tree import Action, Tool, ToolCall

FIND = {"type": "object", "properties": {"item": {"type": "string"}, "n": {"type": "integer"}}, "required": ["item"]}
PICK = {
    "type": "object",
    "properties": {
        "a": {"type": "boolean"},
        "b": {"enum": ["x", "y's"]},
        "c": {"type": "array", "items": {"$ref": "#/$defs/whole"}},
    },
    "$defs": {"whole": {"type": "integer", "minimum": 1}},
}
TOOLS = tuple(
    Tool(name=name, description="", schema=schema)
    for name, schema in {"find": FIND, "wait": {"type": "object", "properties": {}}, "pick": PICK}.items()
)
END, NOT_ALLOWED = 3, "does not allow at the beginning"
MARKS = sorted({mark for family in FAMILIES for mark in family.call_format.marks})
FORMS: list[RestrictedFormat] = [TextCalls(), Hermes()]


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


@cache
def matchers() -> tuple[GrammarMatchers, Callable[[str], list[int]]]:
    tokenizer = small_tokenizer(["[find(item='tea', n=3)]"] * 3, 400, None)
    return GrammarMatchers(tokenizer.backend_tokenizer.to_str(), 400), tokenizer.encode


def takes(call_format: RestrictedFormat, text: str, *, required: bool = False, most: int | None = None) -> bool:
    """Whether a whole text is allowed."""
    grammar = action_grammar(call_format, TOOLS, MARKS, required=required, most_calls=most)
    built, encode = matchers()
    try:
        found = built.start(grammar, (END,), encode(text))
    except ValueError as error:
        if NOT_ALLOWED in str(error):
            return False
        raise
    return bool(found.next()[0] & 1 << END)


def test_what_the_format_writes_is_allowed() -> None:
    actions = (
        Action(calls=(call("find", item="tea's"),)),
        Action(calls=(call("find", item='ü "q"\n', n=-3), call("wait"))),
        Action(calls=(call("pick"),)),
        Action(calls=(call("pick", b="y's", c=[1, 2]),)),
        Action(calls=(call("pick", a=True),)),
    )
    for call_format, action in product(FORMS, actions):
        text = call_format.write(action)
        assert call_format.parse(text).calls == action.calls
        assert takes(call_format, text), text
        assert takes(call_format, text, required=True), text
        assert takes(call_format, f"Let me see.\n\nIt is 3 < 4.\n{text}"), text
        assert takes(call_format, text, most=1) == (len(action.calls) == 1), text


def test_text_alone_is_allowed_where_no_call_is_required_and_no_text_has_a_mark() -> None:
    for call_format in FORMS:
        for text in ("no call", "a list: [1, 2]", "two\nlines"):
            assert takes(call_format, text)
            assert not takes(call_format, text, required=True)
        for mark in MARKS:
            assert not takes(call_format, f"so {mark} it is"), mark


def test_a_call_that_no_tool_takes_is_not() -> None:
    actions = (
        Action(calls=(call("find"),)),
        Action(calls=(call("find", item=3),)),
        Action(calls=(call("find", item="tea", n="x"),)),
        Action(calls=(call("pick", c=[0]),)),
        Action(calls=(call("nope"),)),
    )
    for call_format in FORMS:
        for action in actions:
            assert not takes(call_format, call_format.write(action)), action
        # A schema that says nothing of other properties takes them; Python's calls have those of the schema alone.
        assert takes(call_format, call_format.write(Action(calls=(call("wait", z=1),)))) == isinstance(
            call_format, Hermes
        )


def test_thinking_that_the_prompt_opened_comes_before_a_required_call() -> None:
    grammar = action_grammar(TextCalls(), TOOLS, MARKS, required=True, most_calls=None, opens_thinking=True)
    built, encode = matchers()
    built.start(grammar, (END,), encode("so\nI [wait()]</think>\n\n[wait()]"))
    with pytest.raises(ValueError, match=NOT_ALLOWED):
        built.start(grammar, (END,), encode("</think>Look"))
