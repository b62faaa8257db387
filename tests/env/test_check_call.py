"""Arguments that cannot be checked or written are a problem of the call, not an exception."""

import json
import re
import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import Field
from tests.fuzz import inputs

from bough.env import check_call
from bough.env.check_call import check_tools
from bough.env.json_schema import read_schema
from bough.env.tools.function_tool import function_tool
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


def tool(**properties: Any) -> Tool:
    definitions = properties.pop("defs", {})
    return Tool(name="f", description="", schema={"type": "object", "properties": properties, "$defs": definitions})


def problem(schema: Any, value: Any, **definitions: Any) -> str:
    return check_call(ToolCall(name="f", arguments={"x": value}), (tool(x=schema, defs=definitions),))


@pytest.mark.parametrize("key", ["multipleOf", "divisibleBy"])
def test_multiples_are_those_of_decimals(key: str) -> None:
    dialect = {} if key == "multipleOf" else {"$schema": "http://json-schema.org/draft-03/schema#"}
    payment = Tool(name="f", description="", schema=dialect | {"properties": {"x": {"type": "number", key: 0.01}}})
    wrong = {}
    for value in (19.99, 0.07, 4.35, 0.3, 100, 1e300, 0, -2.5, 10**400, 0.005, 1.234, 1e-9, float("inf"), float("nan")):
        wrong[value] = check_call(ToolCall(name="f", arguments={"x": value}), (payment,))
    assert [value for value, said in wrong.items() if said] == [0.005, 1.234, 1e-9, *[*wrong][-2:]]
    assert "is not a multiple of 0.01" in wrong[0.005]


def test_a_hint_of_pydantic_takes_multiples_of_decimals() -> None:
    def pay(amount: Annotated[float, Field(multiple_of=0.01)]) -> float:
        """Pays."""
        return amount

    found = function_tool(pay, takes_state=False)
    for amount in (19.99, 0.07, 4.35):
        assert check_call(ToolCall(name="pay", arguments={"amount": amount}), (found.tool,)) == ""
        assert found(None, found.convert({"amount": amount})) == str(amount)
    assert check_call(ToolCall(name="pay", arguments={"amount": 0.005}), (found.tool,))


def test_a_check_has_a_deadline() -> None:
    lists = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/twice"}] * 2 + [{"type": "string"}]}, "minItems": 2}
    for schema, value in (({"pattern": "^(a+)+$"}, "a" * 40 + "!"), ({"$ref": "#/$defs/twice"}, nested(60))):
        begun = time.monotonic()
        assert "has no end" in problem(schema, value, twice=lists)
        assert time.monotonic() - begun < 20, "it takes hours"
    assert problem({"pattern": "^(a+)+$"}, "aaa") == "", "the next check goes on"
    assert read_schema('{"additionalProperties": {"patternProperties": {"^(a+)+$": {}}}}').needs_deadline
    assert read_schema(json.dumps(doubled(16))).needs_deadline
    assert not read_schema(json.dumps(doubled(8))).needs_deadline


def doubled(levels: int) -> dict[str, Any]:
    """A schema with twice as many ways to each level as to the one above."""
    made: dict[str, Any] = {f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": made | {f"a{levels}": {}}}


def test_a_schema_that_has_a_mistake_is_named_before_a_call() -> None:
    mistakes = {
        "'#/$defs/none' to nothing": {"$ref": "#/$defs/none"},
        "leads back to itself": {"$ref": "#/$defs/a"},
        "leads back": {"anyOf": [{"type": "string"}, {"not": {"$ref": "#/$defs/a"}}]},
        "as Python's module re knows them": {"pattern": r"^\p{L}+$"},
        "no JSON schema": {"type": "text"},
        "the repetition number is too large": {"pattern": f"a{{{2**40}}}"},
        "recursion": {"pattern": "(" * 3000},
        "'https://other/schema' to nothing": {"$ref": "https://other/schema"},
        "'#/type/0/1' to nothing": {"$ref": "#/type/0/1"},
        "'#/$defs/a/allOf/x' to nothing": {"$ref": "#/$defs/a/allOf/x"},
        "'#/$defs/c/not/0' to nothing": {"$defs": {}, "$ref": "#/$defs/c/not/0"},
    }
    for said, schema in mistakes.items():
        wrong = tool(x=schema, defs={"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}})
        with pytest.raises(ValueError, match=f"tool 'f': .*{re.escape(said)}"):
            check_tools((wrong,))
    for other in ({"type": "string"}, {"type": ["array", "null"]}):
        with pytest.raises(ValueError, match="need an object"):
            check_tools((Tool(name="f", description="", schema=other),))
    looped: dict[str, Any] = {}
    looped["properties"] = {"x": looped}
    with pytest.raises(ValueError, match="no JSON"):
        check_tools((Tool(name="f", description="", schema=looped),))


def test_a_recursive_schema_and_references_into_it_are_followed() -> None:
    person = {"type": "object", "properties": {"name": {"$ref": "#/$defs/text"}, "child": {"$ref": "#/$defs/person"}}}
    definitions = {"person": person, "text": {"type": "string"}}
    assert problem({"$ref": "#/$defs/person"}, {"name": "a", "child": {"child": {"name": "b"}}}, **definitions) == ""
    assert "['child']['name']: 3" in problem({"$ref": "#/$defs/person"}, {"child": {"name": 3}}, **definitions)


def test_messages_have_a_limit() -> None:
    said = problem({"enum": ["x" * 100_000]}, "y" * 100_000)
    assert len(said) < 600
    assert said.endswith("']")
    several = tuple(Tool(name=f"tool{number}", description="", schema={}) for number in range(1000))
    said = check_call(ToolCall(name="x" * 10**6, arguments={}), several)
    assert len(said) < 600
    assert said.startswith("got the tool 'xxx")


def test_generated_schemas_and_arguments_give_a_problem_or_none() -> None:
    """One message, or a schema that is named as wrong; each check ends."""
    for number, draw in inputs("schemas"):
        schema, other = (generated_schema(draw, int(draw.integers(most))) for most in (3, 2))
        whole = {"properties": {"x": schema}, "$defs": {"a": other}}
        made = Tool(name="f", description="", schema=whole)
        if wrong := schema_problem(made):
            assert wrong.startswith("tool 'f': got a schema"), number
            continue
        said = check_call(ToolCall(name="f", arguments={"x": generated_value(draw, 3)}), (made,))
        assert not said or said.startswith("got wrong arguments of f: "), number
        assert len(said) < 700, number


def schema_problem(made: Tool) -> str:
    try:
        check_tools((made,))
    except ValueError as error:
        return str(error)
    return ""


TEXTS = ("", "a", "aaaa", "é", "1", "2020-01-01", "a\n", "\x00", "%s", "$", "toString")
NUMBERS: tuple[Any, ...] = (0, -1, 1, 2, 0.1, 0.01, 1e308, 10**30, 1e-300, True, None, float("nan"))
PATTERNS = ("^a*$", "", "(", r"\d+", r"^[^\W]$", "a{2,1}", r"(?<n>a)", r"\p{L}", "(?=a)b|c", "[[]", "(a|b)+?", "x" * 50)
TYPES = ("string", "number", "integer", "object", "array", "null", "boolean", "text", 3)


def pick(draw: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(draw.integers(len(values)))]


def generated_value(draw: np.random.Generator, depth: int) -> Any:
    kind = draw.integers(4 if depth else 2)
    if kind == 0:
        return pick(draw, TEXTS)
    if kind == 1:
        return pick(draw, NUMBERS)
    inner = [generated_value(draw, depth - 1) for _ in range(draw.integers(3))]
    return inner if kind == 2 else {pick(draw, TEXTS): each for each in inner}


def generated_schema(draw: np.random.Generator, depth: int) -> Any:
    def inner() -> Any:
        return generated_schema(draw, depth - 1) if depth else pick(draw, ({}, True, False, {"type": "string"}))

    made: dict[str, Any] = {}
    for _ in range(draw.integers(1, 3)):
        key = pick(draw, KEYS)
        made[key] = {
            "type": lambda: pick(draw, TYPES),
            "enum": lambda: [generated_value(draw, 1)],
            "const": lambda: generated_value(draw, 1),
            "pattern": lambda: pick(draw, PATTERNS),
            "format": lambda: pick(draw, ("email", "regex", "uri")),
            "required": lambda: [pick(draw, TEXTS)],
            "uniqueItems": lambda: bool(draw.integers(2)),
            "$ref": lambda: pick(
                draw, (*["#/$defs/a", "#/properties/x"] * 3, "#", "#none", "a b", "", "#/$defs/a/allOf/0")
            ),
            "$id": lambda: pick(draw, ("x", "http://x/y", "#a", "")),
            **dict.fromkeys(("multipleOf", "minimum"), lambda: pick(draw, NUMBERS[1:])),
            **dict.fromkeys(("maxLength", "minItems"), lambda: int(draw.integers(3))),
            **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), lambda: [inner() for _ in range(2)]),
            **dict.fromkeys(("properties", "dependentSchemas"), lambda: {pick(draw, TEXTS): inner()}),
            "patternProperties": lambda: {pick(draw, PATTERNS): inner()},
        }.get(key, inner)()
    return made if draw.integers(30) else generated_value(draw, 1)


KEYS = (
    *("type", "enum", "const", "pattern", "format", "required", "uniqueItems", "$ref", "$id", "multipleOf", "minimum"),
    *("maxLength", "minItems", "allOf", "anyOf", "oneOf", "prefixItems", "properties", "dependentSchemas"),
    *("patternProperties", "items", "not", "if", "then", "contains", "additionalProperties", "unevaluatedProperties"),
    *("unevaluatedItems", "propertyNames"),
)
