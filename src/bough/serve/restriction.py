"""What a request restricts its answer to: a call of some tools, or JSON of a schema."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeAlias, cast

from pydantic import BeforeValidator, Field

from bough.context import Renderer
from bough.grammar import Grammar
from bough.serve.errors import ApiError
from bough.serve.request import Fields, short
from bough.tree import Tool

MOST_SCHEMAS = 2**17
"""Most characters of the schemas that an answer must fit, as JSON."""

Restriction: TypeAlias = Mapping[str, Any] | Sequence[Tool]
"""The schema of the answer, or the tools one of which is called; no tools for no restriction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTool:
    """The tool that a request wants to have called."""

    name: str


def _check_choice(given: object) -> object:
    if given is None or given in ("auto", "none", "required") or isinstance(given, NamedTool):
        return given
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        within = fields.get("function")
        name = cast("dict[str, Any]", within).get("name") if isinstance(within, dict) else fields.get("name")
        if fields.get("type") == "function" and isinstance(name, str):
            return NamedTool(name=name)
    raise ValueError(f"got {short(cast('object', given))}; need auto, none, required, or a function by its name")


ToolChoice: TypeAlias = Annotated[
    Literal["auto", "none", "required"] | NamedTool | None, BeforeValidator(_check_choice)
]
"""Whether the policy may, must or must not call tools, in OpenAI's forms."""


class JsonSchema(Fields):
    """A schema with its name; an answer under a schema is always strict."""

    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")


def json_texts(kind: str, given: JsonSchema | None, place: str) -> Restriction:
    """The schema of an answer's format; no restriction for text.

    Raises:
        ApiError: 400 for a format without its schema.
    """
    if kind == "text":
        return ()
    if kind == "json_object":
        return {"type": "object"}
    if given is None or given.json_schema is None:
        raise ApiError(400, f"{place}: got json_schema without a schema; need one", param=place)
    return given.json_schema


class HasTool(Protocol):
    """A tool as a request has it."""

    @property
    def tool(self) -> Tool:
        """The tool as a value."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What a request says of its tools and its answer.

    Attributes:
        offered: The tools of the prompt.
        restriction: What the answer must be: a forced call, or a format; () for anything.
    """

    offered: tuple[Tool, ...]
    restriction: Restriction


def tool_settings(choice: ToolChoice, tools: Sequence[HasTool] | None, answer: Restriction = ()) -> ToolSettings:
    """The tools of a request, which are none with the choice none, and the restriction of its answer.

    Args:
        choice: Whether tools are called.
        tools: The tools.
        answer: The schema of the answer; () for text. A forced call goes before it.

    Raises:
        ApiError: 400 for a choice of a tool that the request does not have, and for schemas that are too large.
    """
    offered = () if choice == "none" else tuple(each.tool for each in tools or ())
    restriction = called_tools(choice, offered) or answer
    schemas = [answer] if isinstance(restriction, Mapping) else []
    characters = len(json.dumps([*schemas, *(each.schema for each in offered)])) if restriction else 0
    if characters > MOST_SCHEMAS:
        raise ApiError(
            400,
            f"got schemas of {characters:,} characters for an answer that must fit them (tool_choice, a format); need "
            f"at most {MOST_SCHEMAS:,}: send smaller schemas, or leave the answer free",
            param="tools" if offered else None,
        )
    return ToolSettings(offered=offered, restriction=restriction)


def called_tools(choice: ToolChoice, tools: Sequence[Tool]) -> Sequence[Tool]:
    """The tools one of which must be called; none for a free choice.

    Raises:
        ApiError: 400 for a tool that the request does not have.
    """
    if choice in (None, "auto", "none"):
        return ()
    found = [tool for tool in tools if choice == "required" or choice == NamedTool(name=tool.name)]
    if not found:
        wanted = "a call" if choice == "required" else f"a call of {choice.name!r:.100}"
        raise ApiError(
            400,
            f"tool_choice: got {wanted} with the tools {[each.name for each in tools]}; need it in tools",
            param="tool_choice",
        )
    return found


def grammar_of_answer(
    renderer: Renderer, restriction: Restriction, tools: Sequence[Tool], *, most_calls: int | None
) -> Grammar | None:
    """What the tokens of an answer may be; None for anything.

    Args:
        renderer: Knows the format of calls.
        restriction: What the request restricts the answer to.
        tools: The tools of the request: where there are some, an answer in a schema may be calls instead.
        most_calls: 1 for one call, None for any number.

    Raises:
        ApiError: 400 where calls in the format of the model can't be enforced.
    """
    schema, called = (restriction, tools) if isinstance(restriction, Mapping) else (None, restriction)
    if not called:
        return None if schema is None else Grammar.of_schema(schema)
    try:
        return renderer.call_grammar(called, required=True, most_calls=most_calls, answer=schema)
    except ValueError as error:
        place = "tool_choice" if schema is None else "tools beside a format of the answer"
        raise ApiError(400, f"{place}: {error}; or leave it out", param="tool_choice") from error
