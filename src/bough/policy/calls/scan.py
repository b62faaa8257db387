"""What the formats share: a search for marks, and the text before calls."""

import re
from collections.abc import Callable, Iterable

from bough.policy.calls.thinking import find_call
from bough.tree import Action, BadCall, ToolCall

ReadCalls = tuple[list[ToolCall | BadCall], int]
"""The calls after a mark, at least one, and the position after them."""

BLANK = re.compile(r"\s*")


def scan(mark: re.Pattern[str], text: str, begin: int, read: Callable[[re.Match[str]], ReadCalls]) -> Action:
    """Parses an action: its text, and the calls that `read` finds after each mark outside of thinking."""
    kept, at = "", 0
    calls: list[ToolCall | BadCall] = []
    while found := find_call(mark, text, max(begin, at)):
        kept += text[at : found.start()]
        more, at = read(found)
        calls += more
    return Action(text=(kept + text[at:]).strip(), calls=tuple(calls))


def skip(text: str, at: int) -> int:
    """The position after blanks."""
    blank = BLANK.match(text, at)
    return blank.end() if blank else at


def bad_call(text: str, mark: re.Match[str], end: str, problem: str, next_mark: re.Pattern[str]) -> ReadCalls:
    """A bad call from a mark to its end, else to the next mark, else to the end of the text."""
    # A mark may be empty, such as a lookahead.
    following = next_mark.search(text, max(mark.end(), mark.start() + 1))
    limit = following.start() if following else len(text)
    closing = text.find(end, mark.end(), limit) if end else -1
    stop = limit if closing < 0 else closing + len(end)
    return [BadCall(text=text[mark.start() : stop], problem=problem)], stop


def good_and_bad(action: Action) -> tuple[list[ToolCall], str]:
    """The calls of an action, and the texts of its bad calls."""
    good = [call for call in action.calls if isinstance(call, ToolCall)]
    return good, "".join(call.text for call in action.calls if isinstance(call, BadCall))


def joined(parts: Iterable[str], between: str = "\n") -> str:
    """The parts that are not empty."""
    return between.join(filter(None, parts))
