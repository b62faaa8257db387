"""Canonical text of a value: two values are compared without unpickling a program's data in this process.

The program that runs tests in the sandbox contains the text of this file, so it imports nothing at run time.
"""

from typing import Any

LISTS: "Any" = (list, tuple)
SETS: "Any" = (set, frozenset)
DICTIONARIES: "Any" = dict


def canonical(value: "Any", shown: bool = False) -> str:
    """Returns one line of ASCII that is the same for equal values; `equal_texts` compares a float with an integer.

    Lists and tuples are equal. Floats are equal to nine digits, integers exactly. A value of any other type than the
    built-in ones is equal to none.

    Args:
        value: The value.
        shown: Whether True and False keep their names; else they are 1 and 0.
    """
    if isinstance(value, bool):
        return str(value) if shown else str(int(value))
    if value is None or isinstance(value, (str, bytes)):
        return ascii(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        whole = abs(value) < 1e15 and value.is_integer()
        return str(int(value)) if whole else format(value, ".9g")
    if isinstance(value, LISTS):
        return "[" + ", ".join([canonical(each, shown) for each in value]) + "]"
    if isinstance(value, SETS):
        if not value:
            return "set()"  # an empty dictionary is {}
        return "{" + ", ".join(sorted([canonical(each, shown) for each in value])) + "}"
    if isinstance(value, DICTIONARIES):
        pairs = sorted([(canonical(key, shown), canonical(each, shown)) for key, each in value.items()])
        return "{" + ", ".join([key + ": " + each for key, each in pairs]) + "}"
    return "an object of another type"


def output_lines(text: str) -> str:
    """A program's output without spaces at the ends of lines and without empty lines around it."""
    return "\n".join([line.rstrip() for line in text.strip().split("\n")])
