"""Tools, calls and results as text, for chat templates without tools."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bough.policy.calls import CallFormat, Hermes, PlainFormat, Pythonic, ToolCode
from bough.policy.calls.call_rules import python_calls
from bough.policy.calls.hermes import OPEN
from bough.tree import Action, Tool, ToolCall

LIST_LINE = r"[ \t]*\[(?s:.*)"
"""A line that begins like a list of Python calls."""

SIGNATURE = {"type", "properties", "required", "additionalProperties"}
"""The keys of a schema that a signature contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCalls(PlainFormat):
    """Calls as Python (`Pythonic`), which takes few tokens; as JSON (`Hermes`) where a name is none of Python's.

    Attributes:
        python: The format of Python calls; Gemma 3 was trained on its own.

    Examples:
        >>> TextCalls().write(Action(calls=(ToolCall(name="find", arguments={"item": "tea"}),)))
        "[find(item='tea')]"
    """

    python: Pythonic | ToolCode = Pythonic()

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (OPEN, *self.python.marks)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        call_format = Hermes() if OPEN in text[begin:] else self.python
        return call_format.parse(text, begin, tools)

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        read = [
            (call.name, call.arguments)
            for call in self.parse(self.python.write(action)).calls
            if isinstance(call, ToolCall)
        ]
        good = [(call.name, dict(call.arguments)) for call in action.calls if isinstance(call, ToolCall)]
        return (self.python if read == good else Hermes()).write(action, hide)

    @property
    def never_in_line(self) -> str:
        """See `RestrictedFormat`."""
        return LIST_LINE

    def call_rules(self, tools: Sequence[Tool], *, most_calls: int | None) -> str:
        """See `RestrictedFormat`: Python's calls, or JSON where a tool can't be called in Python."""
        if all(_signature({"name": each.name, "parameters": each.schema}) for each in tools):
            return python_calls(tools, most_calls=most_calls)
        return Hermes().call_rules(tools, most_calls=most_calls)


def tools_as_text(records: Sequence[Mapping[str, Any]], call_format: CallFormat | None = None) -> str:
    """The part of the system prompt that describes tools, given as in `tool_record`, and the format of their calls.

    A tool whose names are Python's is a signature, `find(item: string, count?: integer): Finds an item.` Any other is
    JSON, and is called in JSON, unless the format is that of a family.

    Args:
        records: The tools.
        call_format: The format of calls; None for `TextCalls()`.
    """
    shown_as = TextCalls() if call_format is None else call_format
    lines = [_signature(each["function"]) for each in records]
    shown = [line or json.dumps(each, ensure_ascii=False) for line, each in zip(lines, records, strict=True)]
    example = Action(calls=(ToolCall(name="TOOL", arguments={"ARGUMENT": "VALUE"}),))
    if isinstance(shown_as, TextCalls):
        python = shown_as.python.write(example)
        call_formats = [
            *([f"A call:{' ' if isinstance(shown_as.python, Pythonic) else chr(10)}{python}"] if any(lines) else []),
            *([f"A call of a tool in JSON:\n{Hermes().write(example)}"] if not all(lines) else []),
        ]
    else:
        call_formats = [f"A call:\n{shown_as.write(example)}"]
    return "\n".join(["Tools:", *shown, *call_formats])


def result_as_text(content: str) -> str:
    """The result of a call in the user's message."""
    return f"result: {content}"


def _signature(function: Mapping[str, Any]) -> str:
    """A tool as a signature with its description; "" where Python cannot call it by its names."""
    name, schema = function["name"], function.get("parameters", {})
    properties, required = schema.get("properties", {}), schema.get("required", [])
    call = Action(calls=(ToolCall(name=name, arguments=dict.fromkeys(properties)),))
    if TextCalls().write(call) != Pythonic().write(call):
        return ""
    arguments = [f"{each}{'' if each in required else '?'}: {_kind(kind)}" for each, kind in properties.items()]
    rest = {key: value for key, value in schema.items() if key not in SIGNATURE}
    where = f" with {json.dumps(rest, ensure_ascii=False)}" if rest else ""
    return f"{name}({', '.join(arguments)}){where}: {function.get('description', '')}"


def _kind(schema: object) -> str:
    """The type of an argument: a word where the schema has no more than that, else the schema."""
    text = json.dumps(schema, ensure_ascii=False)
    word = re.fullmatch(r'\{"type": "(\w+)"\}', text)
    return word[1] if word else text
