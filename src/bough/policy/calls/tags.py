"""Calls of a name and arguments between tags, each argument with a name and a value without quotes."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bough.policy.calls.plain_values import read_arguments
from bough.tree import BadCall, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedCall:
    """A call as it is written.

    Attributes:
        name: The name of the tool.
        arguments: The names and texts of its arguments.
        as_text: The names of the arguments that are marked as texts; their texts are their values.
        end: The position after it.
    """

    name: str
    arguments: Sequence[tuple[str, str]]
    as_text: frozenset[str]
    end: int

    def read(self, tools: Sequence[Tool], text: str) -> ToolCall | BadCall:
        """The call as a value.

        Args:
            tools: The tools of the state.
            text: The text of the call, for a bad one.
        """
        call, texts = read_arguments(self.name, self.arguments, tools, text), dict(self.arguments)
        if isinstance(call, BadCall) or not self.as_text:
            return call
        values: Mapping[str, object] = {
            name: texts[name] if name in self.as_text else value for name, value in call.arguments.items()
        }
        return ToolCall(name=call.name, arguments=values)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedCalls:
    """The parts of such calls, each with the blanks after it.

    Attributes:
        head: The name of the tool, its group `name`.
        argument: An argument, with the groups `name` and `value`; one with a group `text` that is "true" is a text.
        end: The text after the arguments.
        read_name: From a name as it is written: returns the name.
    """

    head: re.Pattern[str]
    argument: re.Pattern[str]
    end: re.Pattern[str]
    read_name: Callable[[str], str] = field(default=str.strip)

    def match(self, text: str, begin: int, never: str) -> TaggedCall | None:
        """The call at a position; None where there is none, or none that ends.

        Args:
            text: The text of an action.
            begin: The position.
            never: The text after a call, which no value has: a value that does not end would have it.
        """
        head = self.head.match(text, begin)
        if head is None:
            return None
        at, found = head.end(), list[re.Match[str]]()
        while argument := self.argument.match(text, at):
            found.append(argument)
            at = argument.end()
        end = self.end.match(text, at)
        if end is None:
            return None
        names, values = ([each[group] for each in found] for group in ("name", "value"))
        names = [self.read_name(each) for each in names]
        as_text = frozenset(
            name for name, each in zip(names, found, strict=True) if each.groupdict().get("text") == "true"
        )
        if any(never in value for value in values):
            return None
        given = [*zip(names, values, strict=True)]
        return TaggedCall(name=self.read_name(head["name"]), arguments=given, as_text=as_text, end=end.end())
