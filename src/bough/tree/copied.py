"""Copies of JSON data."""

from collections.abc import Mapping, Sequence
from typing import cast

SCALARS = frozenset({str, int, float, bool, type(None)})


def copied(value: object) -> object:
    """The value with mappings, lists and tuples of its own; texts, numbers and other values are shared."""
    if type(value) in SCALARS:  # most values, and cheaper than the next test
        return value
    if isinstance(value, Mapping):
        return copied_fields(cast("Mapping[str, object]", value))
    if isinstance(value, list):
        return [copied(each) for each in cast("Sequence[object]", value)]
    if isinstance(value, tuple):
        return tuple(copied(each) for each in cast("Sequence[object]", value))
    return value


def copied_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """A copy of named values, as of `copied`."""
    return {name: copied(each) for name, each in fields.items()}
