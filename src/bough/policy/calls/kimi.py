"""Calls of Kimi-K2: an id with the name of the tool, and JSON arguments, between special tokens."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import write_json
from bough.policy.calls.sections import Sections
from bough.tree import Action, Tool, ToolCall

BEGIN, CALL = "<|tool_calls_section_begin|>", "<|tool_call_begin|>"
ARGUMENTS = "<|tool_call_argument_begin|>"
SECTIONS = Sections(
    begin=BEGIN,
    end="<|tool_calls_section_end|>",
    call=CALL,
    call_end="<|tool_call_end|>",
    head=re.compile(rf"\s*(?:functions\.)?(?P<name>[^\n<]+):(?P<number>\d+)\s*{re.escape(ARGUMENTS)}\s*"),
    shown=f"{BEGIN}{CALL}functions.NAME:0{ARGUMENTS}{{...}}<|tool_call_end|><|tool_calls_section_end|>",
)
ID = re.compile(r"functions\.(.+):\d+", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kimi(PlainFormat):
    """A call is `functions.NAME:NUMBER`, which is its id, and JSON arguments. Other ids get another number.

    Examples:
        >>> found = Kimi().parse(Kimi().write(Action(calls=(ToolCall(name="find", arguments={"n": 1}),))))
        >>> found
        Action(text='', calls=(ToolCall(name='find', arguments={'n': 1}, call_id='functions.find:0'),))
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (BEGIN, CALL)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        return SECTIONS.parse(text, begin, lambda head: f"functions.{head['name'].strip()}:{head['number']}")

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""

        def written(number: int, call: ToolCall) -> str:
            known = ID.fullmatch(call.call_id)
            call_id = call.call_id if known and known[1] == call.name else f"functions.{call.name}:{number}"
            return f"{hide(call_id)}{ARGUMENTS}{hide(write_json(dict(call.arguments)))}"

        return SECTIONS.write(action, written, "")
