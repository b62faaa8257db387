"""The result of one check of the machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes:
        about: Its subject.
        text: The result, and the remedy if it is bad.
        good: Whether Bough works with it; true for an extra that is not installed.
    """

    about: str
    text: str
    good: bool = True
