"""Places of exceptions: in the user's code, through libraries, with causes, in full when debugging."""

import importlib
import json
from pathlib import Path

import pytest

from bough.usercode.origin import describe, is_users, place, shorten
from bough.worlds.frozenlake import FrozenLake


def caught(number: int) -> Exception:
    """An exception out of the standard library, or out of Bough, that this file led to."""
    try:
        json.loads("{") if number == 0 else FrozenLake(size=0)
    except ValueError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize("number", [0, 1])
def test_the_innermost_line_of_the_users_counts(number: int) -> None:
    line = 1 + Path(__file__).read_text().splitlines().index(
        '        json.loads("{") if number == 0 else FrozenLake(size=0)'
    )
    assert place(caught(number)) == f"{__file__}, line {line}, in caught"


def test_an_exception_with_its_causes() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    outer = Mute()
    outer.__cause__ = RuntimeError("b")
    outer.__cause__.__context__ = KeyError()
    assert describe(outer) == "Mute: its text cannot be read; caused by RuntimeError: b; caused by KeyError"
    outer.__cause__.__suppress_context__ = True
    assert describe(outer) == "Mute: its text cannot be read; caused by RuntimeError: b"
    outer.__cause__ = outer
    assert describe(outer).count("Mute") == 4, "a circle ends"
    assert place(outer) == ""


def test_debugging_shows_the_whole_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUGH_DEBUG", "1")
    first, *rest = describe(caught(1)).splitlines()
    assert first.startswith("ValueError: FrozenLake.size: got 0")
    assert rest[0] == "Traceback (most recent call last):"
    assert "bough/piece.py" in "".join(rest)


def test_long_texts_are_cut() -> None:
    assert shorten("x" * 2000) == "x" * 2000
    assert shorten("x" * 2001) == "x" * 2000 + "... (cut: 2,001 characters)"


def test_whose_a_file_is() -> None:
    assert is_users(__file__)
    assert is_users("relative.py")
    for name in ("bough", "json", "numpy"):
        assert not is_users(str(importlib.import_module(name).__file__))
    assert not is_users("<frozen importlib._bootstrap>")
