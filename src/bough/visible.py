"""Texts of models, environments and files on a terminal."""

import re

INVISIBLE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
"""Control characters but line feed and tab, marks of the direction of writing, and lone surrogates."""


def visible(text: str) -> str:
    r"""The text with control characters as text, so that it cannot steer a terminal.

    Examples:
        >>> print(visible("a\x1b[2Jb"))
        a\x1b[2Jb
    """
    return INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], text)
