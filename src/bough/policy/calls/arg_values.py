"""Calls of GLM-4.5 to 4.7, Ling, Laguna and Hunyuan: a name, then tags for keys and values."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls import hermes
from bough.policy.calls.format import PlainFormat
from bough.policy.calls.plain_values import read_arguments, write_value
from bough.policy.calls.scan import ReadCalls, bad_call, good_and_bad, joined, scan, skip
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

    Example:
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
        around = rf"(?:{re.escape(self._tag('tool_calls'))}\s*)?" if self.around else ""
        mark = re.compile(rf"{around}{re.escape(self._tag('tool_call'))}\s*")
        return scan(mark, text, begin, partial(self._read, text, tools))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        good, bad = good_and_bad(action)
        calls = self.between.join(self._written(call, hide) for call in good)
        if self.around and good:
            calls = f"{self._tag('tool_calls')}\n{calls}\n{self._tag('/tool_calls')}"
        return joined((action.text, calls + bad), self.before)

    def _tag(self, name: str) -> str:
        return f"<{name}{self.suffix}>"

    def _read(self, text: str, tools: Sequence[Tool], mark: re.Match[str]) -> ReadCalls:
        start, end = self._tag("tool_call"), self._tag("/tool_call")
        key, value = self._pattern("arg_key"), self._pattern("arg_value")
        if not self.suffix and text.startswith("{", mark.end()):
            return hermes.read_call(text, mark)
        head = re.compile(r"[^<>{}\n]*").match(text, mark.end())
        at, given = skip(text, head.end() if head else mark.end()), list[tuple[str, str]]()
        if text.startswith(self._tag("tool_sep"), at):
            at = skip(text, at + len(self._tag("tool_sep")))
        while (named := key.match(text, at)) and (found := value.match(text, skip(text, named.end()))):
            given.append((named[1].strip(), found[1]))
            at = skip(text, found.end())
        if head is None or not head[0].strip() or not text.startswith(end, at):
            shown = f"{start}NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>{end}"
            return bad_call(text, mark, end, f"got no {end} after the arguments of a call; need {shown}", mark.re)
        stop = at + len(end)
        if self.around and text.startswith(self._tag("/tool_calls"), skip(text, stop)):
            stop = skip(text, stop) + len(self._tag("/tool_calls"))
        return [read_arguments(head[0].strip(), given, tools, text[mark.start() : stop])], stop

    def _pattern(self, name: str) -> re.Pattern[str]:
        return re.compile(f"{re.escape(self._tag(name))}(.*?){re.escape(self._tag('/' + name))}", re.DOTALL)

    def _written(self, call: ToolCall, hide: Callable[[str], str]) -> str:
        if not self.suffix and not all(NAME.fullmatch(name) for name in (call.name, *call.arguments)):
            return hermes.Hermes().write(Action(calls=(call,)), hide)
        head = f"{self._tag('tool_call')}{hide(call.name)}{self._tag('tool_sep') if self.around else ''}{self.line}"
        parts = [
            f"{self._tag('arg_key')}{hide(name)}{self._tag('/arg_key')}{self.line}"
            f"{self._tag('arg_value')}{hide(write_value(value, self._holds))}{self._tag('/arg_value')}{self.line}"
            for name, value in call.arguments.items()
        ]
        return f"{head}{''.join(parts)}{self._tag('/tool_call')}"

    def _holds(self, text: str) -> bool:
        return self._tag("/arg_value") not in text and self._tag("/tool_call") not in text
