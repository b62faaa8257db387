"""Checks the types of an environment's settings that come from Python; for texts see `bough.config`."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from bough.checks import listed
from bough.piece import check_bounds


def check_settings(settings: object) -> None:
    """Checks the numbers, strings, literals and tuples in the fields of a dataclass; other fields are not checked.

    Then their bounds, see `bough.piece`.

    Raises:
        ValueError: when a field has a value of another type, a number is nan or out of its bounds; names the field.
    """
    cls = type(settings)
    for name, annotation in _types(cls).items():
        value = getattr(settings, name)
        if not _fits(annotation, value):
            raise ValueError(f"{cls.__name__}.{name}: got {value!r:.200}; need {_wanted(annotation)}")
    check_bounds(settings)


@cache
def _types(cls: type) -> Mapping[str, Any]:
    """The types of the settable fields."""
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in dataclasses.fields(cls) if each.init}


def _fits(annotation: Any, value: object) -> bool:
    """Whether a value is of a type; True for types that are not checked."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = cast("tuple[object, ...]", value)
        # Each class checks the literals in its tuples, and lists the known ones in the message.
        parts = [str if get_origin(part) is Literal else part for part in parts]
        kinds = parts[:1] * len(items) if parts[-1] is ... else parts
        return len(kinds) == len(items) and all(map(_fits, kinds, items))
    if annotation in (int, float):
        number = not isinstance(value, bool) and isinstance(value, Integral if annotation is int else Real)
        return number and value == value  # nan does not equal itself; an integer may be too large for a float
    return not (annotation in (str, bool, NoneType) and not isinstance(value, annotation))


def _wanted(annotation: Any) -> str:
    """A type in words."""
    words = {int: "an integer", float: "a number", str: "a text", bool: "True or False", NoneType: "None"}
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(map(_wanted, parts))
    if origin is Literal:
        return listed(parts)
    if origin is tuple:
        return f"a tuple, each item {_wanted(parts[0])}" if parts[-1] is ... else f"a tuple of {len(parts)} items"
    return words.get(annotation) or f"a {getattr(annotation, '__name__', annotation)}"
