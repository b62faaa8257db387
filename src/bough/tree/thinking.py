"""Thinking in the text of an action: between `<think>` and `</think>`; a prompt may open it."""

import re
from dataclasses import dataclass
from enum import StrEnum

THINK, THINK_END = "<think>", "</think>"


class ThinkingState(StrEnum):
    """How far the thinking at an edge of a text is."""

    ABSENT = "absent"
    """There is none."""
    EMPTY = "empty"
    """It ends, and has blanks alone."""
    OPEN = "open"
    """It does not end."""
    CLOSED = "closed"
    """It has content, and ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The thinking at the beginning of a text.

    Attributes:
        state: How far it is.
        content: The characters between its marks.
        begin: The position of the content in the text.
        rest: The characters after it; the whole text where there is none.
    """

    state: ThinkingState
    content: str = ""
    begin: int = 0
    rest: str = ""


def split_thinking(text: str, *, opened: bool = False) -> Thinking:
    r"""Splits a text after the thinking at its beginning.

        split_thinking("<think>Why?</think>Go.")            CLOSED, "Why?", "Go."
        split_thinking("<think>\n</think>Go.")              EMPTY, "\n", "Go."
        split_thinking("<think>Why?")                       OPEN, "Why?", ""
        split_thinking("Why?</think>Go.")                   ABSENT, "", "Why?</think>Go."
        split_thinking("Why?</think>Go.", opened=True)      CLOSED, "Why?", "Go."

    Args:
        text: The text.
        opened: Whether the text before it opened the thinking, so that it has no `<think>` of its own, or a second one.
    """
    begin = len(text) - len(text.lstrip())
    if text.startswith(THINK, begin):
        begin += len(THINK)
    elif opened:
        begin = 0
    else:
        return Thinking(state=ThinkingState.ABSENT, rest=text)
    content, ended, rest = text[begin:].partition(THINK_END)
    state = ThinkingState.OPEN if not ended else ThinkingState.CLOSED if content.strip() else ThinkingState.EMPTY
    return Thinking(state=state, content=content, begin=begin, rest=rest)


def is_empty_thinking(text: str, *, opened: bool = False) -> bool:
    """Whether a text is empty thinking and blanks alone; with `opened` without its `<think>`."""
    found = split_thinking(text, opened=opened)
    return found.state is ThinkingState.EMPTY and bool(found.begin) != opened and not found.rest.strip()


def without_empty_thinking(text: str) -> str:
    """A text without the empty thinking at its beginning, which a prompt may have opened, and the blanks after it."""
    found = split_thinking(text, opened=True)
    return found.rest.lstrip() if found.state is ThinkingState.EMPTY else text


def answer_of(text: str) -> str:
    """The characters after the thinking at the beginning of a text, with or without its `<think>`."""
    return split_thinking(text, opened=THINK_END in text).rest


def find_outside_thinking(mark: re.Pattern[str], text: str, begin: int = 0) -> re.Match[str] | None:
    """Returns the first match of a pattern from a position on that is not within thinking, anywhere in the text.

    Thinking ends at the first `</think>`, and without one at the end of the text.
    """
    while found := mark.search(text, begin):
        opened = text.find(THINK, begin, found.start())
        if opened < 0:
            return found
        begin = _thinking_end(text, opened)
    return None


def open_thinking(text: str) -> int:
    """The position of thinking that does not end, anywhere in a text; the text's length where all thinking ends."""
    at = 0
    while (begin := text.find(THINK, at)) >= 0:
        at = _thinking_end(text, begin)
        if not text.endswith(THINK_END, begin, at):
            return begin
    return len(text)


def prompt_thinking(prompt: str) -> ThinkingState:
    """The state of the thinking at the end of a generation prompt: open, empty or absent."""
    end = prompt.rstrip()
    if end.endswith(THINK):
        return ThinkingState.OPEN
    return ThinkingState.EMPTY if end.endswith(THINK_END) else ThinkingState.ABSENT


def before_prompt_thinking(prompt: str) -> str:
    """A generation prompt without the thinking at its end."""
    end = prompt.rstrip()
    before = end.removesuffix(THINK_END)
    opened = before.rstrip()
    if opened.endswith(THINK):
        return opened.removesuffix(THINK)
    return before if before != end else prompt


def continue_thinking(text: str, empty: str) -> str:
    r"""The text of an action as it continues a prompt that ends with `<think>`; `restore_thinking` is the inverse.

    An action without thinking ends it at once, by `empty`, as the template does for such a message. Empty thinking in
    an action gets one more line break where it would look the same.

        continue_thinking("Go.", "\n</think>\n\n")                    "\n</think>\n\nGo."
        continue_thinking("<think>Why?</think>Go.", "\n</think>\n\n")  "Why?</think>Go."
        continue_thinking("<think>\n</think>Go.", "\n</think>\n\n")    "\n\n</think>Go."
    """
    if not text.startswith(THINK):
        return empty + text
    rest = text.removeprefix(THINK)
    return rest if _line_breaks_more(rest, empty) is None else "\n" + rest


def restore_thinking(text: str, empty: str) -> str:
    """The text of an action, with `<think>` before its thinking, from its text after a prompt that ends with it."""
    more = _line_breaks_more(text, empty)
    if more is None:
        return THINK + text
    return THINK + text[1:] if more else split_thinking(text, opened=True).rest.lstrip()


def _line_breaks_more(text: str, empty: str) -> int | None:
    """How many line breaks more than `empty` a text has before `</think>`; None where it begins otherwise."""
    found, own = split_thinking(text, opened=True), split_thinking(empty, opened=True)
    if found.begin or found.state is not ThinkingState.EMPTY:
        return None
    more = len(found.content) - len(own.content)
    return more if more >= 0 and found.content == "\n" * more + own.content else None


def _thinking_end(text: str, begin: int) -> int:
    """The position after the thinking that a position is in; the end of the text where it does not end."""
    end = text.find(THINK_END, begin)
    return len(text) if end < 0 else end + len(THINK_END)
