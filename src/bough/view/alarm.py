"""Alarms of a run: what was found, what it means, and what to do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something in a run that a person should look at. The terminal and the viewer show the same one.

    Attributes:
        kind: A short name, equal for all alarms of a kind: "cut actions".
        found: What was found, with its numbers; no full stop at the end.
        meaning: What it means.
        action: What to do.
    """

    kind: str
    found: str
    meaning: str
    action: str

    def __str__(self) -> str:
        """On one line, as the terminal shows it."""
        return " ".join(f"{part}." for part in (self.found.rstrip("."), self.meaning, self.action) if part)

    def record(self) -> Mapping[str, str]:
        """As JSON data."""
        return asdict(self)
