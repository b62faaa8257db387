"""Calls of MiniMax-M2, and of DeepSeek V3.2 and V4: tags with the names of tool and argument as attributes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape, unescape

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.plain_values import write_value
from bough.policy.calls.scan import ReadCalls, scan, skip, write_action
from bough.policy.calls.tags import TaggedCalls
from bough.tree import Action, BadCall, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke(PlainFormat):
    r"""The calls are `<invoke name="NAME">` with `<parameter name="NAME">` for each argument, between two marks.

    Attributes:
        start: The text before the calls. Without it, the tag of a tool begins calls too.
        end: The text after them.
        prefix: Written before the names of the inner tags.
        before: Written between a text and the calls.
        typed: Whether `string="true"` marks an argument that is a text.
        bare: Written between the tags of a call without arguments.

    Examples:
        >>> call_format = Invoke(start="<minimax:tool_call>", end="</minimax:tool_call>")
        >>> call = '<invoke name="find"><parameter name="item">tea</parameter></invoke>'
        >>> call_format.parse(f"<minimax:tool_call>{call}</minimax:tool_call>")
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
        return (self.start, f"<{self.prefix}invoke name=")

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        mark = re.compile(rf"{re.escape(self.start)}\s*|(?=<{re.escape(self.prefix)}invoke name=)")
        return scan(mark, text, begin, partial(self._read, text, tools))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""

        def written(calls: Sequence[ToolCall]) -> str:
            return "\n".join([self.start, *(self._written(call, hide) for call in calls), self.end])

        return write_action(action, written, self.before)

    def _read(self, text: str, tools: Sequence[Tool], mark: re.Match[str]) -> ReadCalls:
        tags, calls, at = self._tags, list[ToolCall | BadCall](), mark.end()
        while call := tags.match(text, at, f"</{self.prefix}invoke>"):
            calls.append(call.read(tools, text[at : call.end]))
            at = skip(text, call.end)
        if calls and text.startswith(self.end, at):
            return calls, at + len(self.end)
        following = re.compile(re.escape(self.start)).search(text, max(at, mark.start() + 1))
        limit = following.start() if following else len(text)
        ended = text.find(self.end, at, limit)
        stop = limit if ended < 0 else ended + len(self.end)
        shown = f'<{self.prefix}invoke name="NAME"><{self.prefix}parameter name="NAME">VALUE'
        problem = f"got no whole call, or no {self.end} after the calls; need {self.start}{shown}... {self.end}"
        return [*calls, BadCall(text=text[at if calls else mark.start() : stop], problem=problem)], stop

    @property
    def _tags(self) -> TaggedCalls:
        name = re.escape(self.prefix)
        return TaggedCalls(
            head=re.compile(rf'<{name}invoke name="(?P<name>[^"\n]*)">\s*'),
            argument=re.compile(
                rf'<{name}parameter name="(?P<name>[^"\n]*)"(?: string="(?P<text>true|false)")?>(?P<value>.*?)'
                rf"</{name}parameter>\s*",
                re.DOTALL,
            ),
            end=re.compile(rf"</{name}invoke>"),
            read_name=unescape,
        )

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
        return not any(f"</{self.prefix}{tag}" in text for tag in ("parameter", "invoke")) and self.end not in text
