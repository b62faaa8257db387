"""Describes where an exception was raised: its class, its text, and the file and line of the user's code."""

import inspect
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

MOST_CHARACTERS = 2000
"""Maximum length of the text of an exception."""

MOST_CAUSES = 3

OURS = Path(__file__).resolve().parents[1]
STANDARD = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
INSTALLED = {"site-packages", "dist-packages"}


def is_users(file: str) -> bool:
    """Whether a source file is the user's: outside of Bough, of installed packages and of the standard library."""
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    return not INSTALLED & set(path.parts) and not any(path.is_relative_to(root) for root in (OURS, *STANDARD))


def place(error: BaseException) -> str:
    """`FILE, line N, in FUNCTION` of the innermost frame in the user's code; "" when there is none."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if is_users(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name}"
    return ""


def definition(function: Callable[..., object]) -> str:
    """`FILE, line N` of a function's definition; its name where it has no source in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else repr(function)


def describe(error: BaseException) -> str:
    """`CLASS: TEXT (FILE, line N, in FUNCTION)`, followed by its causes in the same form.

    With the environment variable BOUGH_DEBUG the whole traceback follows. Worker processes call it before they send
    an error, since tracebacks are not pickled.
    """
    texts = "; caused by ".join(_line(each) for each in _chain(error))
    if not os.environ.get("BOUGH_DEBUG"):
        return texts
    trace = "".join(traceback.format_exception(error))
    return f"{texts}\n{shorten(trace, 20 * MOST_CHARACTERS)}"


def shorten(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text cut to `most` characters with a note of its length; shorter texts are unchanged."""
    return text if len(text) <= most else f"{text[:most]}... (cut: {len(text):,} characters)"


def _line(error: BaseException) -> str:
    try:
        text = shorten(str(error))
    except Exception:  # the user's __str__ may fail
        text = "its text cannot be read"
    where = place(error)
    return f"{type(error).__name__}{f': {text}' if text else ''}{f' ({where})' if where else ''}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and up to `MOST_CAUSES` of its causes, innermost last."""
    each: BaseException | None = error
    for _ in range(1 + MOST_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
