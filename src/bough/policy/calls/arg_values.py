"""Calls of GLM-4.5 to 4.7, Ling, Laguna and Hunyuan: a name, then tags for keys and values."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls import hermes
from bough.policy.calls.format import PlainFormat
from bough.policy.calls.plain_values import write_value
from bough.policy.calls.scan import ReadCalls, bad_call, scan, write_action
from bough.policy.calls.tags import TaggedCalls
from bough.tree import Action, Tool, ToolCall

NAME = re.compile(r"[^\s<>{}](?:[^<>{}\n]*[^\s<>{}])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgValues(PlainFormat):
    r"""A call is a name, and each argument a key and a value, all between tags.

    Attributes:
        suffix: Written within each tag, after its name (":opensource" of Hunyuan).
        line: Written between tags.
        before: Written between a text and a call.
        between: Written between calls.
        around: Whether all calls together stand between `<tool_calls>` tags, and `<tool_sep>` after each name.

    Examples:
        >>> ArgValues().parse("<tool_call>find<arg_key>item</arg_key><arg_value>tea</arg_value></tool_call>")
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    suffix: str = ""
    line: str = "\n"
    before: str = "\n"
    between: str = "\n"
    around: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (*((self._tag("tool_calls"),) if self.around else ()), self._tag("tool_call"))

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        outer, start = re.escape(self._tag("tool_calls")), re.escape(self._tag("tool_call"))
        mark = re.compile(rf"(?:{outer}\s*)?{start}\s*|{outer}" if self.around else rf"{start}\s*")
        return scan(mark, text, begin, partial(self._read, text, tools))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        return write_action(action, partial(self._written, hide), self.before)

    def _tag(self, name: str) -> str:
        return f"<{name}{self.suffix}>"

    def _read(self, text: str, tools: Sequence[Tool], mark: re.Match[str]) -> ReadCalls:
        start, end = self._tag("tool_call"), self._tag("/tool_call")
        if text.startswith("{", mark.end()):
            return hermes.read_call(text, mark, start, end)
        call = self._tags.match(text, mark.end(), end)
        if call is None or not call.name:
            shown = f"{start}NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>{end}"
            return bad_call(text, mark, end, f"got no name, or no {end} after the arguments; need {shown}", mark.re)
        return [call.read(tools, text[mark.start() : call.end])], call.end

    @property
    def _tags(self) -> TaggedCalls:
        def pattern(tag: str, group: str) -> str:
            return rf"{re.escape(self._tag(tag))}(?P<{group}>.*?){re.escape(self._tag('/' + tag))}\s*"

        after_name = rf"(?:{re.escape(self._tag('tool_sep'))}\s*)?"
        after_all = rf"(?:\s*{re.escape(self._tag('/tool_calls'))})?" if self.around else ""
        return TaggedCalls(
            head=re.compile(rf"(?P<name>[^<>{{}}\n]*)\s*{after_name}"),
            argument=re.compile(pattern("arg_key", "name") + pattern("arg_value", "value"), re.DOTALL),
            end=re.compile(re.escape(self._tag("/tool_call")) + after_all),
        )

    def _written(self, hide: Callable[[str], str], calls: Sequence[ToolCall]) -> str:
        each = self.between.join(self._call(call, hide) for call in calls)
        return f"{self._tag('tool_calls')}\n{each}\n{self._tag('/tool_calls')}" if self.around else each

    def _call(self, call: ToolCall, hide: Callable[[str], str]) -> str:
        if not all(NAME.fullmatch(name) for name in (call.name, *call.arguments)):
            return hermes.write_call(call, hide, self._tag("tool_call"), self._tag("/tool_call"))
        head = f"{self._tag('tool_call')}{hide(call.name)}{self._tag('tool_sep') if self.around else ''}{self.line}"
        parts = [
            f"{self._tag('arg_key')}{hide(name)}{self._tag('/arg_key')}{self.line}"
            f"{self._tag('arg_value')}{hide(write_value(value, self._holds))}{self._tag('/arg_value')}{self.line}"
            for name, value in call.arguments.items()
        ]
        return f"{head}{''.join(parts)}{self._tag('/tool_call')}"

    def _holds(self, text: str) -> bool:
        return self._tag("/arg_value") not in text and self._tag("/tool_call") not in text
