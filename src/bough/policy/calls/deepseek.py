"""Calls of DeepSeek R1, V3 and V3.1: a name and JSON arguments between special tokens."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import write_json
from bough.policy.calls.sections import Sections
from bough.tree import Action, Tool, ToolCall

# Their bars are full-width, and their blanks are lower blocks.
BEGIN, END, CALL, SEPARATOR, CALL_END = (
    f"<\uff5ctool\u2581{name}\uff5c>"
    for name in ("calls\u2581begin", "calls\u2581end", "call\u2581begin", "sep", "call\u2581end")
)
SECTIONS = Sections(
    begin=BEGIN,
    end=END,
    call=CALL,
    call_end=CALL_END,
    # The separator stands after the name, or between "function" and the name.
    head=re.compile(
        rf"\s*(?:function{SEPARATOR}(?=[^\n<]+\s*```json))?(?P<name>[^\n<]+)(?:{SEPARATOR}|\s*```json)\s*(?=\{{)"
    ),
    tail="(?:```)?",
    shown=f"{BEGIN}{CALL}NAME{SEPARATOR}{{...}}{CALL_END}{END}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSeek(PlainFormat):
    """A call has its name before a separator (V3.1), or after it and with fenced arguments (R1). Both are parsed.

    Attributes:
        fenced: Whether calls are written as by R1 and V3.

    Examples:
        >>> found = DeepSeek().parse(DeepSeek().write(Action(calls=(ToolCall(name="find", arguments={"n": 1}),))))
        >>> found
        Action(text='', calls=(ToolCall(name='find', arguments={'n': 1}, call_id=''),))
    """

    fenced: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (BEGIN, CALL)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        return SECTIONS.parse(text, begin, lambda _: "")

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""

        def written(number: int, call: ToolCall) -> str:
            del number
            name, arguments = hide(call.name), hide(write_json(dict(call.arguments)))
            if self.fenced:
                return f"function{SEPARATOR}{name}\n```json\n{arguments}\n```"
            return f"{name}{SEPARATOR}{arguments}"

        return SECTIONS.write(action, written, "\n" if self.fenced else "")
