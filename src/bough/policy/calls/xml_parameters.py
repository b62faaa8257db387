"""Calls of Qwen3-Coder, Qwen3.5, Nemotron 3, StepFun and Seed: a tag for the function, and one for each argument."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls import hermes
from bough.policy.calls.format import PlainFormat
from bough.policy.calls.hermes import Hermes
from bough.policy.calls.plain_values import read_arguments, write_value
from bough.policy.calls.scan import ReadCalls, bad_call, good_and_bad, joined, scan, skip
from bough.tree import Action, Tool, ToolCall

FUNCTION = re.compile(r"<function=([^>\n]*)>\s*")
PARAMETER = re.compile(r"<parameter=([^>\n]*)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)
CLOSED = re.compile(r"</function>\s*")
NAME = re.compile(r"[^<>\n\s](?:[^<>\n]*[^<>\n\s])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlParameters(PlainFormat):
    r"""A call is `<function=NAME>` with `<parameter=NAME>` for each argument, between `start` and `end`.

    Attributes:
        start: The text before a call. Without it, `<function=` begins a call too.
        end: The text after it.
        before: Written between a text and a call.
        between: Written between calls.
        after: Written after the last call.
        line: Written between a tag of an argument and its value.

    Example:
        >>> XmlParameters().parse('<tool_call><function=find><parameter=item>tea</parameter></function></tool_call>')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    start: str = "<tool_call>"
    end: str = "</tool_call>"
    before: str = "\n\n"
    between: str = "\n"
    after: str = ""
    line: str = "\n"

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (self.start, "<function=")

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        mark = re.compile(rf"{re.escape(self.start)}\s*|(?=<function=)")
        return scan(mark, text, begin, partial(self._read, text, tools))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        good, bad = good_and_bad(action)
        calls = self.between.join(self._written(call, hide) for call in good) + (self.after if good else "")
        return joined((action.text, calls + bad), self.before)

    def _read(self, text: str, tools: Sequence[Tool], mark: re.Match[str]) -> ReadCalls:
        need = f"need {self.start}<function=NAME><parameter=NAME>VALUE</parameter></function>{self.end}"
        function = FUNCTION.match(text, mark.end())
        if function is None and mark[0].strip() == hermes.OPEN and text.startswith("{", mark.end()):
            return hermes.read_call(text, mark)
        if function is None:
            return bad_call(text, mark, self.end, f"got no <function=NAME> in a call; {need}", _after(mark))
        at, given = function.end(), list[tuple[str, str]]()
        while found := PARAMETER.match(text, at):
            given.append((found[1].strip(), found[2]))
            at = found.end()
        closed = CLOSED.match(text, at)
        if closed is None:
            return bad_call(
                text, mark, self.end, f"got a call without </function> after its arguments; {need}", _after(mark)
            )
        end = closed.end() if text.startswith(self.end, skip(text, closed.end())) else 0
        stop = end + len(self.end) if end else at + len("</function>")
        return [read_arguments(function[1].strip(), given, tools, text[mark.start() : stop])], stop

    def _written(self, call: ToolCall, hide: Callable[[str], str]) -> str:
        if not all(NAME.fullmatch(name) for name in (call.name, *call.arguments)):
            return Hermes().write(Action(calls=(call,)), hide)
        values = [
            f"<parameter={hide(name)}>{self.line}{hide(write_value(value, self._holds))}{self.line}</parameter>\n"
            for name, value in call.arguments.items()
        ]
        return f"{self.start}\n<function={hide(call.name)}>\n{''.join(values)}</function>\n{self.end}"

    def _holds(self, text: str) -> bool:
        """Whether a value can stand between its tags; without `line`, one with line breaks at its ends cannot."""
        return "</parameter" not in text and self.end not in text and (bool(self.line) or text == text.strip("\n"))


def _after(mark: re.Match[str]) -> re.Pattern[str]:
    """The mark of the next call: with its own tag before it, `<function=` begins none."""
    return re.compile(re.escape(mark[0].strip())) if mark[0] else mark.re
