"""Finite numbers in the settings of a piece."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import cast

INFINITE = {"infinite": True}
"""Metadata of a field that may be -inf or inf: `field(default=0.2, metadata=INFINITE)`."""


def require_finite(piece: object) -> None:
    """Refuse nan in the fields of a piece and of its nested pieces, and inf in fields without `INFINITE`.

    Call it at the end of `__post_init__`.

    Raises:
        ValueError: names the first such field.
    """
    for place, value in refused_numbers(piece):
        raise ValueError(f"{type(piece).__name__}.{place}: got {value}; need a finite number")


def refused_numbers(value: object, where: str = "", *, infinite: bool = False) -> Iterator[tuple[str, float]]:
    """Yield the path and value of each nan, and of each inf where `infinite` and the metadata do not allow it."""
    if isinstance(value, float):
        if not math.isfinite(value) and not (infinite and math.isinf(value)):
            yield where, value
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            allowed = bool(each.metadata.get("infinite"))
            yield from refused_numbers(getattr(value, each.name), f"{where}.{each.name}".lstrip("."), infinite=allowed)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from refused_numbers(item, f"{where}.{key}".lstrip("."), infinite=infinite)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for place, item in enumerate(cast("Sequence[object]", value)):
            yield from refused_numbers(item, f"{where}.{place}", infinite=infinite)
