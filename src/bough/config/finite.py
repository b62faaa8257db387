"""Checks that the settings of a run are finite numbers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import cast

from bough.config.config import ConfigError

INFINITE = {"infinite": True}
"""Metadata of a field that may be -inf or inf: `field(default=0.2, metadata=INFINITE)`."""


def check_finite(piece: object, where: str = "") -> None:
    """Refuse nan in the fields of a piece and of its nested pieces, and inf in fields without `INFINITE`.

    Raises:
        ConfigError: names the first such field.
    """
    for place, value in _numbers(piece, where, infinite=False):
        raise ConfigError(f"{place}: got {value}; need a finite number")


def _numbers(value: object, where: str, *, infinite: bool) -> Iterator[tuple[str, float]]:
    """Yield the path and value of each number that is not allowed."""
    if isinstance(value, float):
        if not math.isfinite(value) and not (infinite and math.isinf(value)):
            yield where, value
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            allowed = bool(each.metadata.get("infinite"))
            yield from _numbers(getattr(value, each.name), f"{where}.{each.name}".lstrip("."), infinite=allowed)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from _numbers(item, f"{where}.{key}".lstrip("."), infinite=infinite)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for place, item in enumerate(cast("Sequence[object]", value)):
            yield from _numbers(item, f"{where}.{place}", infinite=infinite)
