"""Checks of the values in a run's settings: finite numbers, and one of the values of a `Literal`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import cast

from bough.checks import wrong_choices
from bough.config.config import ConfigError

INFINITE = {"infinite": True}
"""Metadata of a field that may be -inf or inf: `field(default=0.2, metadata=INFINITE)`."""


def check_values(piece: object, where: str = "") -> None:
    """Check the fields of a piece and of its nested pieces.

    Refuses nan, inf in fields without `INFINITE`, and in a field whose type is a `Literal` all other values.

    Raises:
        ConfigError: names the first such field, its value, and the values that it takes.
    """
    for place, reason in _wrong(piece, where, infinite=False):
        raise ConfigError(f"{place}: {reason}")


def _wrong(value: object, where: str, *, infinite: bool) -> Iterator[tuple[str, str]]:
    """Yield the path of each value that is not allowed, and the reason."""
    if isinstance(value, float):
        if not math.isfinite(value) and not (infinite and math.isinf(value)):
            yield where, f"got {value}; need a finite number"
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((_dotted(where, name), reason) for name, reason in wrong_choices(value))
        for each in fields(value):
            allowed = bool(each.metadata.get("infinite"))
            yield from _wrong(getattr(value, each.name), _dotted(where, each.name), infinite=allowed)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from _wrong(item, _dotted(where, str(key)), infinite=infinite)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for place, item in enumerate(cast("Sequence[object]", value)):
            yield from _wrong(item, _dotted(where, str(place)), infinite=infinite)


def _dotted(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
