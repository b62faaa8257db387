"""Checks of a dataclass's fields: types, finite numbers, and one of a few values."""

import dataclasses
import inspect
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

INFINITE = {"infinite": True}
"""Metadata of a field that may be -inf or inf: `field(default=0.2, metadata=INFINITE)`."""

WORKING_FOLDER = {"working_folder": True}
"""Metadata of a field with the working directory of a process, whose files are no data of the run."""

CHECKS_FINITE = "checks_finite"
"""Attribute of a `__post_init__` that ends with `check_finite`."""

EMPTY = (str, int, type, NoneType)
"""Classes of values without parts, which are never infinite or nan."""


def check_finite(settings: object) -> None:
    """Refuse nan in the fields of a dataclass and of what they hold, and inf in fields without `INFINITE`.

    Call it at the end of `__post_init__`.

    Raises:
        ValueError: names the first such field.
    """
    for place, reason in wrong_numbers(settings):
        raise ValueError(f"{type(settings).__name__}.{place}: {reason}")


def wrong_numbers(value: object, where: str = "", *, infinite: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the path of each number that is not allowed, and the reason.

    Args:
        value: A number, a dataclass, or a mapping or sequence of them.
        where: The path of the value.
        infinite: Whether the value may be infinite.
    """
    if isinstance(value, float) and not math.isfinite(value) and not (infinite and math.isinf(value)):
        yield where, f"got {value}; need a finite number"
    for name, part, allowed in parts(value, infinite=infinite):
        if not isinstance(part, EMPTY) and not _is_finite(type(part)):
            yield from wrong_numbers(part, f"{where}.{name}" if where else name, infinite=allowed)


def parts(value: object, *, infinite: bool = False) -> Iterator[tuple[str, object, bool]]:
    """Yield the name and the value of each part of a dataclass, mapping or sequence, and whether it may be infinite."""
    own = _fields(type(value))
    if own is not None:
        for name, allowed in own:
            yield name, getattr(value, name), allowed
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield str(key), item, infinite
    elif isinstance(value, Sequence):
        for place, item in enumerate(cast("Sequence[object]", value)):
            yield str(place), item, infinite


@cache
def _is_finite(cls: type) -> bool:
    """Whether each value of a class was checked by `check_finite` when it was made."""
    return hasattr(getattr(cls, "__post_init__", None), CHECKS_FINITE)


@cache
def _fields(cls: Any) -> Sequence[tuple[str, bool]] | None:
    """The fields of a dataclass, and whether each may be infinite; none of a plain value; None for another class."""
    if issubclass(cls, (*EMPTY, bytes, float)):
        return ()
    if not dataclasses.is_dataclass(cls):
        return None
    return [(each.name, bool(each.metadata.get("infinite"))) for each in dataclasses.fields(cls)]


def check_choices(settings: object) -> None:
    """Check the fields of a dataclass whose type is a `Literal`, or a `Literal` or None.

    Raises:
        ValueError: names the field, its value, and the values that it takes.
    """
    for name, reason in wrong_choices(settings):
        raise ValueError(f"{type(settings).__name__}.{name}: {reason}")


def wrong_choices(settings: object) -> Iterator[tuple[str, str]]:
    """Yield the name of each field with another value, and the reason: "got 'swis'; need 'swiss' or 'anchor'"."""
    for name, known in _choices(type(settings)).items():
        value = getattr(settings, name)
        if not _among(known, value):
            yield name, f"got {value!r}; need {listed(known)}"


def _among(known: Sequence[object], value: object) -> bool:
    """Whether a value is one of some; an array, which compares by element, is none."""
    return any(isinstance(value, type(each)) and value == each for each in known)


def listed(values: Sequence[object]) -> str:
    """The values as a message names them: "'a', 'b' or 'c'"."""
    *most, last = map(repr, values)
    return f"{', '.join(most)} or {last}" if most else last


@cache
def _choices(cls: Any) -> Mapping[str, tuple[object, ...]]:
    """The values of each settable field that takes one of a few."""
    types = field_types(cls)
    found = {each.name: _values(types.get(each.name)) for each in dataclasses.fields(cls) if each.init}
    return {name: known for name, known in found.items() if known}


@cache
def field_types(cls: Any) -> Mapping[str, Any]:
    """The types of a dataclass's fields, without types with a class that is imported for type checkers only."""
    with suppress(NameError):
        return get_type_hints(cls, include_extras=True)
    found: dict[str, Any] = {}
    for base in reversed(cast("tuple[type, ...]", cls.__mro__)):
        names = vars(sys.modules[base.__module__])
        for name, kind in inspect.get_annotations(base).items():
            with suppress(NameError):
                alone = SimpleNamespace(__annotations__={name: kind})
                found |= get_type_hints(alone, names, dict(vars(base)), include_extras=True)
    return found


def type_parts(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union and the metadata of `Annotated`: int, None and the bounds of a bounded field."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        for part in get_args(annotation):
            yield from type_parts(part)
    else:
        yield annotation


def _values(annotation: Any) -> tuple[object, ...]:
    """The values of a type; empty for a type that is no `Literal`."""
    if get_origin(annotation) is Annotated:
        return _values(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) not in (Union, UnionType):
        return ()
    parts = [(None,) if part is NoneType else _values(part) for part in get_args(annotation)]
    return tuple(value for part in parts for value in part) if all(parts) else ()


def check_types(settings: object) -> None:
    """Check the types of the numbers, texts, literals and tuples in the fields of a dataclass, and of no other fields.

    `bough.config` checks settings that come as texts.

    Raises:
        ValueError: names the first field with a value of another type, or with a nan that is no Python float.
    """
    for name, kind in _settable(type(settings)).items():
        value: object = getattr(settings, name)
        if not _fits(kind, value):
            raise ValueError(f"{type(settings).__name__}.{name}: got {value!r:.200}; need {_wanted(kind)}")


@cache
def _settable(cls: Any) -> Mapping[str, Any]:
    """The types of the fields that are arguments of a dataclass."""
    types = field_types(cls)
    return {each.name: types[each.name] for each in dataclasses.fields(cls) if each.init and each.name in types}


def _fits(annotation: Any, value: object) -> bool:
    """Whether a value is of a type; True for types that are not checked."""
    if type(value) is annotation:
        return True
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _fits(parts[0], value)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in parts)
    if origin is Literal:
        return _among(parts, value)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = cast("tuple[object, ...]", value)
        # Each class checks the literals in its tuples, and lists the known ones in the message.
        parts = [str if get_origin(part) is Literal else part for part in parts]
        kinds = parts[:1] * len(items) if parts[-1:] == [...] else parts
        return len(kinds) == len(items) and all(map(_fits, kinds, items))
    if annotation in (int, float):
        number = not isinstance(value, bool) and isinstance(value, Integral if annotation is int else Real)
        # `check_finite` refuses nan as a Python float, with a message of its own; other types of nan are refused here.
        return number and (isinstance(value, float) or value == value)
    if isinstance(value, Real) and getattr(annotation, "_is_runtime_protocol", False):
        # 2.5 for an integer or a schedule.
        return isinstance(value, annotation)
    return not (annotation in (str, bool, NoneType) and not isinstance(value, annotation))


def _wanted(annotation: Any) -> str:
    """A type in words."""
    words = {int: "an integer", float: "a number", str: "a text", bool: "True or False", NoneType: "None"}
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _wanted(parts[0])
    if origin in (Union, UnionType):
        return " or ".join(map(_wanted, parts))
    if origin is Literal:
        return listed(parts)
    if origin is tuple:
        return f"a tuple, each item {_wanted(parts[0])}" if parts[-1:] == (...,) else f"a tuple of {len(parts)} items"
    return words.get(annotation) or f"a {getattr(annotation, '__name__', annotation)}"
