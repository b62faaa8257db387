"""What the formats share: a search for marks, bad calls, and the text before calls."""

import re
from collections.abc import Callable, Iterable, Sequence

from bough.tree import Action, BadCall, ToolCall
from bough.tree.thinking import THINK_END, find_outside_thinking

ReadCalls = tuple[list[ToolCall | BadCall], int]
"""The calls after a mark, at least one, and the position after them."""

BLANK = re.compile(r"\s*")

LINE = rf"(?:^|(?<={THINK_END}))\s*"
"""A pattern of the beginning of a line, or of the text after thinking; for `re.MULTILINE`."""


def scan(mark: re.Pattern[str], text: str, begin: int, read: Callable[[re.Match[str]], ReadCalls]) -> Action:
    """Parses an action: its text, and the calls that `read` finds after each mark outside of thinking."""
    kept, at = "", 0
    calls: list[ToolCall | BadCall] = []
    while found := find_outside_thinking(mark, text, max(begin, at)):
        kept += text[at : found.start()]
        more, at = read(found)
        calls += more
    return Action(text=(kept + text[at:]).strip(), calls=tuple(calls))


def skip(text: str, at: int) -> int:
    """The position after blanks."""
    blank = BLANK.match(text, at)
    return blank.end() if blank else at


def after(text: str, at: int, end: str) -> int:
    """The position after blanks and a text; the given one where the text does not follow, or is empty."""
    closing = skip(text, at)
    return closing + len(end) if end and text.startswith(end, closing) else at


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


def write_action(action: Action, write_calls: Callable[[Sequence[ToolCall]], str], before: str) -> str:
    """The text of an action: its own, its calls, and the texts of its bad calls.

    Args:
        action: The action.
        write_calls: From the calls, at least one: returns their text.
        before: Written between the text and the calls.
    """
    good, bad = good_and_bad(action)
    return joined((action.text, (write_calls(good) if good else "") + bad), before)


def joined(parts: Iterable[str], between: str = "\n") -> str:
    """The parts that are not empty."""
    return between.join(filter(None, parts))
