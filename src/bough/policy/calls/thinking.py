"""Thinking: calls are found outside of it, and a prompt may open it."""

import re

OPEN, CLOSE = "<think>", "</think>"

LINE = rf"(?:^|(?<={CLOSE}))\s*"
"""A pattern of the beginning of a line, or of the text after thinking; for `re.MULTILINE`."""

EMPTY = re.compile(rf"(\s*){CLOSE}(\s*)")
"""Thinking without content after its opening tag, and the blanks around its end."""


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


def unfinished(text: str) -> str:
    """The text of thinking that does not end; "" where all thinking ends."""
    at = 0
    while (begin := text.find(OPEN, at)) >= 0:
        if text.find(CLOSE, begin) < 0:
            return text[begin:]
        at = thinking_end(text, begin)
    return ""


def after_opening(text: str, empty: str) -> str:
    r"""The text of an action as it continues a prompt that ends with `<think>`; `opened` is the inverse.

    An action without thinking ends it at once, by `empty`, as the template does for such a message. Empty thinking in
    an action gets one more line break where it would look the same.

        after_opening("Go.", "\n</think>\n\n")                    "\n</think>\n\nGo."
        after_opening("<think>Why?</think>Go.", "\n</think>\n\n")  "Why?</think>Go."
        after_opening("<think>\n</think>Go.", "\n</think>\n\n")    "\n\n</think>Go."
    """
    if not text.startswith(OPEN):
        return empty + text
    rest = text[len(OPEN) :]
    return "\n" + rest if _extra(rest, empty) is not None else rest


def opened(text: str, empty: str) -> str:
    """The text of an action, with `<think>` before its thinking, from its text after a prompt that ends with it."""
    extra = _extra(text, empty)
    if extra is None:
        return OPEN + text
    return OPEN + text[1:] if extra else text[text.index(CLOSE) + len(CLOSE) :].lstrip()


def _extra(text: str, empty: str) -> int | None:
    """How many line breaks more than `empty` a text has before `</think>`; None where it begins otherwise."""
    found, own = EMPTY.match(text), EMPTY.match(empty)
    if found is None or own is None:
        return None
    more = len(found[1]) - len(own[1])
    return more if more >= 0 and found[1] == "\n" * more + own[1] else None
