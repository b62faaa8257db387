"""Tools and calls as text."""

import pytest

from bough.policy.calls import Hermes, Pythonic
from bough.policy.tool_text import TextCalls, tools_as_text
from bough.tree import Action, BadCall, Tool, ToolCall, tool_record

PLAIN = Tool(
    name="find",
    description="Finds an item.",
    schema={
        "type": "object",
        "properties": {"item": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        "required": ["item"],
        "additionalProperties": False,
    },
)
NESTED = Tool(
    name="buy",
    description="Buys it.",
    schema={"type": "object", "properties": {"at": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "integer"}}},
)
SPACED = Tool(name="get time", description="The time.", schema={"type": "object", "properties": {}})
ARGUMENT = Tool(
    name="pay", description="Pays.", schema={"type": "object", "properties": {"to whom": {"type": "string"}}}
)


def made(name: str, **arguments: object) -> Action:
    return Action(calls=(ToolCall(name=name, arguments=arguments),))


def test_a_tool_is_a_signature_with_all_of_its_schema() -> None:
    assert tools_as_text([tool_record(PLAIN), tool_record(NESTED)]).splitlines() == [
        "Tools:",
        'find(item: string, count?: {"type": "integer", "default": 1}): Finds an item.',
        'buy(at?: {"$ref": "#/$defs/P"}) with {"$defs": {"P": {"type": "integer"}}}: Buys it.',
        "A call: [TOOL(ARGUMENT='VALUE')]",
    ]


@pytest.mark.parametrize("tool", [SPACED, ARGUMENT], ids=lambda tool: tool.name)
def test_a_tool_that_python_cannot_call_is_json(tool: Tool) -> None:
    text = tools_as_text([tool_record(tool)])
    assert f'"name": "{tool.name}"' in text
    assert "<tool_call>" in text
    assert "[TOOL(" not in text
    both = tools_as_text([tool_record(PLAIN), tool_record(tool)])
    assert "find(item: string" in both
    assert "[TOOL(" in both
    assert "<tool_call>" in both


@pytest.mark.parametrize(
    ("action", "call_format"),
    [
        (made("find", item='it\'s "tea"\n', n=[1, None, {"a": True}]), Pythonic()),
        (made("shop.find", item="<tool>"), Pythonic()),
        (made("find", item="<tool_call>"), Hermes()),
        (made("get-time"), Pythonic()),
        (made("pay", **{"from": "ann"}), Pythonic()),
        (made("class", item="tea"), Pythonic()),
        (made("get time"), Hermes()),
        (made("pay", **{"to whom": "ann"}), Hermes()),
    ],
)
def test_a_call_is_python_where_python_can_express_it(action: Action, call_format: Hermes | Pythonic) -> None:
    said = Action(text="Look.", calls=action.calls)
    assert TextCalls().write(said) == call_format.write(said)
    assert TextCalls().parse(call_format.write(said)) == said


def test_a_broken_call_is_bad_and_other_text_is_none() -> None:
    (bad,) = TextCalls().parse("[find(item=").calls
    assert isinstance(bad, BadCall)
    assert TextCalls().parse("done [1]") == Action(text="done [1]")
