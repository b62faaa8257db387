"""Calls of Qwen3-Coder, Qwen3.5, Nemotron 3, StepFun and Seed: a tag for the function, and one for each argument."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls import hermes
from bough.policy.calls.format import PlainFormat
from bough.policy.calls.plain_values import write_value
from bough.policy.calls.scan import ReadCalls, after, bad_call, scan, write_action
from bough.policy.calls.tags import TaggedCalls
from bough.tree import Action, Tool, ToolCall

TAGS = TaggedCalls(
    head=re.compile(r"<function=(?P<name>[^<>\n]*)>\s*"),
    argument=re.compile(r"<parameter=(?P<name>[^<>\n]*)>\n?(?P<value>.*?)\n?</parameter>\s*", re.DOTALL),
    end=re.compile(r"</function>"),
)
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

    Examples:
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

        def written(calls: Sequence[ToolCall]) -> str:
            return self.between.join(self._written(call, hide) for call in calls) + self.after

        return write_action(action, written, self.before)

    def _read(self, text: str, tools: Sequence[Tool], mark: re.Match[str]) -> ReadCalls:
        if mark[0] and text.startswith("{", mark.end()):
            return hermes.read_call(text, mark, self.start, self.end)
        call = TAGS.match(text, mark.end(), self.end)
        if call is None:
            shown = f"{self.start}<function=NAME><parameter=NAME>VALUE</parameter></function>{self.end}"
            problem = f"got no <function=NAME>, or no </function> after the arguments; need {shown}"
            return bad_call(text, mark, self.end, problem, _next(mark))
        stop = after(text, call.end, self.end)
        return [call.read(tools, text[mark.start() : stop])], stop

    def _written(self, call: ToolCall, hide: Callable[[str], str]) -> str:
        if not all(NAME.fullmatch(name) for name in (call.name, *call.arguments)):
            return hermes.write_call(call, hide, self.start, self.end)
        values = [
            f"<parameter={hide(name)}>{self.line}{hide(write_value(value, self._holds))}{self.line}</parameter>\n"
            for name, value in call.arguments.items()
        ]
        return f"{self.start}\n<function={hide(call.name)}>\n{''.join(values)}</function>\n{self.end}"

    def _holds(self, text: str) -> bool:
        """Whether a value can stand between its tags; without `line`, one with line breaks at its ends cannot."""
        return "</parameter" not in text and self.end not in text and (bool(self.line) or text == text.strip("\n"))


def _next(mark: re.Match[str]) -> re.Pattern[str]:
    """The mark of the next call: with its own tag before it, `<function=` begins none."""
    return re.compile(re.escape(mark[0].strip())) if mark[0] else mark.re
