"""Calls of tools as rules of a grammar: what a turn may be so that each of its calls is one that its tool takes."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from bough.grammar import Grammar, json_rule
from bough.policy.calls.format import CallFormat
from bough.tree import Tool
from bough.tree.thinking import THINK_END

TERMINALS = r"""
PY_STRING: /'([^'\\\x00-\x1f]|\\['"\\nrt])*'/ | /"([^"\\\x00-\x1f]|\\['"\\nrt])*"/
PY_INTEGER: /-?(0|[1-9][0-9]{0,17})/
PY_NUMBER: /-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?/
"""
PYTHON = {
    "string": "PY_STRING",
    "integer": "PY_INTEGER",
    "number": "PY_NUMBER",
    "boolean": '"True" | "False"',
    "null": '"None"',
}
"""By a type of a schema without further keys, its values as Python writes them."""

PLAIN_KEYS = {"type", "title", "description", "default"}
"""The keys of a schema that restrict its values by type alone."""


@runtime_checkable
class RestrictedFormat(CallFormat, Protocol):
    """A format whose calls can be enforced while an action is sampled."""

    @property
    def never_in_line(self) -> str:
        """A regular expression of lines that begin a call, besides those with a mark of any family; "" for none."""
        ...

    def call_rules(self, tools: Sequence[Tool], *, most_calls: int | None) -> str:
        """Returns rules of Lark for `calls`, one or more calls of the tools as the format writes them."""
        ...


def action_grammar(
    call_format: RestrictedFormat,
    tools: Sequence[Tool],
    marks: Sequence[str],
    *,
    required: bool,
    most_calls: int | None,
    opens_thinking: bool = False,
    answer: Mapping[str, object] | None = None,
) -> Grammar:
    """What an action may be: text without a mark of calls, and then calls that their tools take.

    Args:
        call_format: The format of the calls.
        tools: The tools; at least one.
        marks: The texts with which calls of any family begin.
        required: Whether it is calls alone, after thinking that the prompt opens; with text, a model need never call.
        most_calls: 1 for one call, None for any number.
        opens_thinking: Whether the prompt ends within thinking.
        answer: The schema of a JSON text that may stand in place of required calls; None for none.
    """
    inside = "|".join(map(_escaped, marks))
    never = "".join(f" & ~/{each}/" for each in (f"(?s:.*)({inside})(?s:.*)", call_format.never_in_line) if each)
    text = f'start: line* (calls | last)?\nline: LINE? "\\n"\nlast: LINE\nLINE: /[^\\n]+/{never}'
    if required:
        before = "thought GAP?" if opens_thinking else ""
        text = f"start: {before} whole\nwhole: calls{'' if answer is None else ' | answer'}"
        text += f"\nthought[lazy]: /(?s:.*){_escaped(THINK_END)}/\nGAP: /\\s+/" if opens_thinking else ""
        text += "" if answer is None else f'\nanswer: " "? json\njson: {json_rule(answer)}'
    return Grammar(f"{text}\n{call_format.call_rules(tools, most_calls=most_calls)}\n")


def json_calls(tools: Sequence[Tool], begin: str, end: str, *, most_calls: int | None) -> str:
    """Rules of `calls`: JSON objects with a name and arguments between two texts, each on a line of its own.

    A tokenizer may begin a line with a blank of its own.
    """
    rules = [f"calls: {_many('json_call', most_calls, ' ')}", "json_call: JSON_BEGIN json_value JSON_END"]
    rules += [f"JSON_BEGIN: / ?{_escaped(begin)}\\n ?/", f"JSON_END: /\\n ?{_escaped(end)}\\n?/"]
    rules.append("json_value: " + " | ".join(f"json_{place}" for place in range(len(tools))))
    for place, tool in enumerate(tools):
        properties = {"name": {"const": tool.name}, "arguments": tool.schema}
        call = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
        rules.append(f"json_{place}: {json_rule({**call, **_definitions(tool.schema)})}")
    return "\n".join(rules)


def python_calls(tools: Sequence[Tool], *, most_calls: int | None) -> str:
    """Rules of `calls`: a Python list of calls with named arguments, the required ones first."""
    rules = [f'calls: PY_BEGIN {_many("py_call", most_calls, ", ")} "]"', r"PY_BEGIN: / ?\[/", TERMINALS]
    rules.append("py_call: " + " | ".join(f"py_{place}" for place in range(len(tools))))
    for place, tool in enumerate(tools):
        known = cast("Mapping[str, Mapping[str, Any]]", tool.schema.get("properties") or {})
        required = cast("Sequence[str]", tool.schema.get("required") or ())
        must = [name for name in known if name in required]
        may = [name for name in known if name not in must]
        given = [f"{json.dumps(f'{name}=')} py_{place}_{number}" for number, name in enumerate([*must, *may])]
        for number, name in enumerate([*must, *may]):
            rules.append(f"py_{place}_{number}: {_python_value(known[name], _definitions(tool.schema))}")
        first, rest = given[: len(must)], given[len(must) :]
        arguments = ' ", " '.join(first) + "".join(f' (", " {each})?' for each in rest)
        if not first:
            # The first of those that are given has no comma before it.
            starts = [each + "".join(f' (", " {later})?' for later in rest[at + 1 :]) for at, each in enumerate(rest)]
            arguments = f"({' | '.join(starts)})?" if starts else ""
        rules.append(f'py_{place}: {json.dumps(f"{tool.name}(")} {arguments} ")"')
    return "\n".join(rules)


def _escaped(text: str) -> str:
    """A text within a regular expression of Lark."""
    return re.escape(text).replace("/", r"\/")


def _many(rule: str, most: int | None, between: str) -> str:
    """One or more of a rule; calls in JSON follow each other without a separator."""
    if most == 1:
        return rule
    return f"{rule}+" if between == " " else f"{rule} ({json.dumps(between)} {rule})*"


def _python_value(schema: Mapping[str, Any], definitions: Mapping[str, object]) -> str:
    """The right side of a rule: the values of a schema as Python writes them, or as JSON where it has more keywords."""
    if "enum" in schema:
        return " | ".join(json.dumps(repr(value)) for value in schema["enum"])
    if schema.keys() <= PLAIN_KEYS and isinstance(schema.get("type"), str) and schema["type"] in PYTHON:
        return PYTHON[schema["type"]]
    return json_rule({**schema, **definitions})


def _definitions(schema: Mapping[str, object]) -> dict[str, object]:
    """The parts of a schema that references name from its root."""
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}
