"""Calls of MiniMax-M2, and of DeepSeek V3.2 and V4: tags with the names of tool and argument as attributes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape, unescape

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.plain_values import read_arguments, write_value
from bough.policy.calls.scan import ReadCalls, good_and_bad, joined, scan, skip
from bough.tree import Action, BadCall, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke(PlainFormat):
    r"""The calls are `<invoke name="NAME">` with `<parameter name="NAME">` for each argument, between two marks.

    Attributes:
        start: The text before the calls.
        end: The text after them.
        prefix: Written before the names of the inner tags.
        before: Written between a text and the calls.
        typed: Whether `string="true"` marks an argument that is a text.
        bare: Written between the tags of a call without arguments.

    Example:
        >>> form = Invoke(start="<minimax:tool_call>", end="</minimax:tool_call>")
        >>> call = '<invoke name="find"><parameter name="item">tea</parameter></invoke>'
        >>> form.parse(f"<minimax:tool_call>{call}</minimax:tool_call>")
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    start: str
    end: str
    prefix: str = ""
    before: str = "\n"
    typed: bool = False
    bare: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (self.start,)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        return scan(re.compile(rf"{re.escape(self.start)}\s*"), text, begin, partial(self._read, text, tools))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        good, bad = good_and_bad(action)
        calls = "".join(f"{self._written(call, hide)}\n" for call in good)
        return joined((action.text, (f"{self.start}\n{calls}{self.end}" if good else "") + bad), self.before)

    def _read(self, text: str, tools: Sequence[Tool], mark: re.Match[str]) -> ReadCalls:
        name = re.escape(self.prefix)
        invoke = re.compile(rf'<{name}invoke name="([^"\n]*)">\s*')
        parameter = re.compile(
            rf'<{name}parameter name="([^"\n]*)"(?: string="(true|false)")?>(.*?)</{name}parameter>\s*', re.DOTALL
        )
        closing = f"</{self.prefix}invoke>"
        calls: list[ToolCall | BadCall] = []
        at = mark.end()
        while head := invoke.match(text, at):
            begin, at, given = at, head.end(), list[tuple[str, str]]()
            texts: set[str] = set()
            while found := parameter.match(text, at):
                given.append((unescape(found[1]), found[3]))
                texts |= {unescape(found[1])} if found[2] == "true" else set()
                at = found.end()
            if not text.startswith(closing, at):
                at = begin
                break
            at += len(closing)
            call = read_arguments(unescape(head[1]), given, tools, text[begin:at])
            calls.append(_as_texts(call, dict(given), texts))
            at = skip(text, at)
        if calls and text.startswith(self.end, at):
            return calls, at + len(self.end)
        following = mark.re.search(text, at)
        limit = following.start() if following else len(text)
        ended = text.find(self.end, at, limit)
        stop = limit if ended < 0 else ended + len(self.end)
        shown = f'<{self.prefix}invoke name="NAME"><{self.prefix}parameter name="NAME">VALUE'
        problem = f"got no whole call, or no {self.end} after the calls; need {self.start}{shown}... {self.end}"
        return [*calls, BadCall(text=text[at if calls else mark.start() : stop], problem=problem)], stop

    def _written(self, call: ToolCall, hide: Callable[[str], str]) -> str:
        values = "".join(f"{self._argument(name, value, hide)}\n" for name, value in call.arguments.items())
        tag = f'<{self.prefix}invoke name="{hide(escape(call.name))}">'
        return f"{tag}\n{values or self.bare}</{self.prefix}invoke>"

    def _argument(self, name: str, value: object, hide: Callable[[str], str]) -> str:
        # An argument marked as a text is one, whatever it looks like.
        plain = self.typed and isinstance(value, str) and self._holds(value)
        kind = f' string="{"true" if plain else "false"}"' if self.typed else ""
        text = str(value) if plain else write_value(value, self._holds)
        return f'<{self.prefix}parameter name="{hide(escape(name))}"{kind}>{hide(text)}</{self.prefix}parameter>'

    def _holds(self, text: str) -> bool:
        return f"</{self.prefix}parameter" not in text and self.end not in text


def _as_texts(call: ToolCall | BadCall, given: dict[str, str], texts: set[str]) -> ToolCall | BadCall:
    """A call whose arguments of some names are their texts."""
    if isinstance(call, BadCall):
        return call
    values = {name: given[name] if name in texts else value for name, value in call.arguments.items()}
    return ToolCall(name=call.name, arguments=values)
