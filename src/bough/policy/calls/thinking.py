"""Finds calls outside of thinking."""

import re

OPEN, CLOSE = "<think>", "</think>"

LINE = rf"(?:^|(?<={CLOSE}))\s*"
"""A pattern of the beginning of a line, or of the text after thinking; for `re.MULTILINE`."""


def thinking_end(text: str, begin: int = 0) -> int:
    """The position after the thinking that a position is in; the end of the text where it does not end."""
    end = text.find(CLOSE, begin)
    return len(text) if end < 0 else end + len(CLOSE)


def find_call(mark: re.Pattern[str], text: str, begin: int) -> re.Match[str] | None:
    """The first match of the mark of a call from a position on that is not within thinking.

    Thinking ends at the first `</think>`, and without one at the end of the text.
    """
    while found := mark.search(text, begin):
        opened = text.find(OPEN, begin, found.start())
        if opened < 0:
            return found
        begin = thinking_end(text, opened)
    return None
