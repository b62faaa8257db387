"""Calls of a head and JSON arguments between special tokens, all of them in one section."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.objects import decode_json, json_call
from bough.policy.calls.scan import ReadCalls, after, bad_call, scan, write_action
from bough.tree import Action, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The marks of such a format.

    Attributes:
        begin: The text before all calls, which may be left out.
        end: The text after them.
        call: The text before a call.
        call_end: The text after it.
        head: A pattern of what stands between `call` and the arguments; has the group `name` of the tool.
        tail: A pattern of what stands between the arguments and `call_end`.
        shown: The format of the calls, for what is wrong.
    """

    begin: str
    end: str
    call: str
    call_end: str
    head: re.Pattern[str]
    tail: str = ""
    shown: str

    def parse(self, text: str, begin: int, call_id: Callable[[re.Match[str]], str]) -> Action:
        """Parses an action; see `CallFormat.parse`.

        Args:
            text: The text of an action.
            begin: No call begins before this character.
            call_id: From the match of a head: returns the id of its call.
        """
        start, call = re.escape(self.begin), re.escape(self.call)
        return scan(re.compile(rf"(?:{start}\s*)?{call}|{start}"), text, begin, partial(self._read, text, call_id))

    def write(self, action: Action, write_call: Callable[[int, ToolCall], str], between: str) -> str:
        """The text of an action.

        Args:
            action: The action.
            write_call: From the number of a call and the call: returns what stands between `call` and `call_end`.
            between: Written between calls.
        """

        def written(calls: Sequence[ToolCall]) -> str:
            each = (f"{self.call}{write_call(number, call)}{self.call_end}" for number, call in enumerate(calls))
            return f"{self.begin}{between.join(each)}{self.end}"

        return write_action(action, written, "")

    def _read(self, text: str, call_id: Callable[[re.Match[str]], str], mark: re.Match[str]) -> ReadCalls:
        """The call after a mark, with the end of all calls where it follows."""
        head = self.head.match(text, mark.end()) if mark[0].endswith(self.call) else None
        if head is None:
            return self._bad(text, mark, "no name of a tool before JSON arguments")
        try:
            arguments, end = decode_json(text, head.end())
        except ValueError as error:
            return self._bad(text, mark, str(error))
        tail = re.compile(rf"\s*{self.tail}\s*{re.escape(self.call_end)}").match(text, end)
        if tail is None:
            return self._bad(text, mark, f"no {self.call_end} after a call")
        row = {"name": head["name"].strip(), "arguments": arguments}

        def own_id(row: Mapping[str, object]) -> str:
            del row
            return call_id(head)

        call = json_call(row, text[mark.start() : tail.end()], key="arguments", call_id=own_id)
        return [call], after(text, tail.end(), self.end)

    def _bad(self, text: str, mark: re.Match[str], problem: str) -> ReadCalls:
        start, call = re.escape(self.begin), re.escape(self.call)
        following = re.compile(rf"(?:{start}\s*)?{call}")
        return bad_call(text, mark, self.call_end, f"got {problem}; need {self.shown}", following)
