"""Whole numbers in the answers of models."""

import re

HIGHEST = 10**9
"""Larger numbers become this one, since Python refuses to convert thousands of digits."""


def integers(text: str, pattern: str = r"\d+") -> list[int]:
    """The whole numbers of a text, in order, each at most `HIGHEST`.

    Args:
        text: The text.
        pattern: Regular expression of a number's digits.

    Examples:
        >>> integers("2, 1 or 3")
        [2, 1, 3]
    """
    found = [digits.lstrip("0") or "0" for digits in re.findall(pattern, text)]
    return [int(digits) if len(digits) < 10 else HIGHEST for digits in found]
