"""Equality of canonical texts."""

import re

TOKEN = re.compile(
    r"""b?'(?:[^'\\]|\\.)*'?|b?"(?:[^"\\]|\\.)*"?|-?\d+(?:\.\d+)?(?:e[+-]\d+)?|.""",
    re.DOTALL,
)
"""A string, a number, or another character. A string may lack its end, so that any text takes linear time."""


def equal_texts(first: str, second: str) -> bool:
    """Whether two canonical texts are of equal values; a float is equal to an integer with the same nine digits."""
    if first == second:
        return True
    tokens, others = TOKEN.findall(first), TOKEN.findall(second)
    return len(tokens) == len(others) and all(map(_equal_tokens, tokens, others))


def _equal_tokens(token: str, other: str) -> bool:
    return token == other or _equal_numbers(token, other) or _equal_numbers(other, token)


def _equal_numbers(whole: str, rounded: str) -> bool:
    """Whether an integer is a rounded float."""
    if not whole.removeprefix("-").isdecimal() or "e+" not in rounded or len(whole) > 300:
        return False
    return format(float(whole), ".9g") == rounded
