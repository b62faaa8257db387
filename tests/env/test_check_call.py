"""Arguments that cannot be checked or written are a problem of the call, not an exception."""

from typing import Any

import pytest

from bough.env import check_call
from bough.tree import Tool, ToolCall

TOOL = Tool(
    name="f",
    description="",
    schema={"type": "object", "properties": {"x": {"type": "string"}, "y": {"$ref": "#/$defs/list"}}}
    | {"$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}},
)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": 10**5000},
        {"x": [{"a": -(10**5000)}]},
        *({name: nested(depth)} for name in "xy" for depth in (150, 985, 5000)),
    ],
)
def test_huge_arguments_are_a_problem(arguments: Any) -> None:
    problem = check_call(ToolCall(name="f", arguments=arguments), (TOOL,))
    assert problem.startswith("got wrong arguments of f")
    assert len(problem) < 200


def test_common_arguments_are_checked_by_the_schema() -> None:
    assert check_call(ToolCall(name="f", arguments={"x": "a", "y": nested(50)}), (TOOL,)) == ""
    assert "is not of type 'string'" in check_call(ToolCall(name="f", arguments={"x": 10**2000}), (TOOL,))
    assert "arguments['y'][0]" in check_call(ToolCall(name="f", arguments={"y": [1]}), (TOOL,))
