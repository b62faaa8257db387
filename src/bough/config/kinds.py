"""Checks whether a piece fits a field: its class against the dataclass or protocol in the field's type."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, ForwardRef, Union, cast, get_args, get_origin, get_type_hints

Leaf = type | str
"""A class that an annotation names, or the name alone where it is not imported at run time."""

CONTAINERS = frozenset(["Sequence", "list", "tuple", "Iterable", "Iterator", "Collection", "Mapping", "dict", "set"])
NUMBERS = (bool, int, float)
NOT_FINITE = ("inf", "-inf", "nan")
"""Texts of numbers that look like names."""


def wants_piece(annotation: Any) -> bool:
    """Whether a field's type contains a dataclass or a protocol, so that it holds one piece or several."""
    return any(_is_kind(part) for part in _parts(annotation))


def number_of(annotation: Any) -> Any:
    """The type of the plain number in a field that holds a number or a piece, `float` of `float | ValueSchedule`."""
    found = tuple(part for part in _parts(annotation) if part in NUMBERS)
    return Union[found] if found and wants_piece(annotation) else None  # noqa: UP007


def element_of(annotation: Any) -> Any:
    """The type of each piece in a field that holds several, `Reward` of `Sequence[Reward]`; None for one piece."""
    if get_origin(annotation) in (Union, UnionType):
        found = (element_of(part) for part in get_args(annotation))
        return next((part for part in found if part is not None), None)
    origin = get_origin(annotation)
    return get_args(annotation)[0] if inspect.isclass(origin) and issubclass(origin, Sequence) else None


def item_of(annotation: Any) -> Any:
    """The type of each piece in a field that holds pieces by name, `Judge` of `Mapping[str, Judge]`; else None."""
    origin = get_origin(annotation)
    return get_args(annotation)[1] if inspect.isclass(origin) and issubclass(origin, Mapping) else None


def wrong_kind(annotation: Any, cls: type) -> str:
    """The reason why a piece of class `cls` does not fit a field of type `annotation`; "" when it fits.

    A dataclass accepts itself and subclasses. A protocol requires its members, with methods of a compatible signature
    and the same annotations. Missing annotations are not compared.
    """
    parts = list(_parts(annotation))
    if cls is NoneType and cls in parts:
        return ""
    reasons = [_reason(get_origin(part) or part, cls) for part in parts if _is_kind(part)]
    return "" if "" in reasons or not reasons else reasons[0]


def check_kinds(settings: object) -> None:
    """Check that the pieces in the fields of a dataclass fit the types of these fields.

    Raises:
        ValueError: names the first field whose piece does not fit.
    """
    cls = type(settings)
    for name, several in _piece_fields(cls).items():
        value: object = getattr(settings, name)
        places: Mapping[str, object] = {name: value}
        if several and _is_piece(value):
            one = type(value).__name__
            raise ValueError(f"{cls.__name__}.{name}: got {one}; need several pieces: ({one}(...),)")
        if isinstance(value, (list, tuple)):
            places = {f"{name}.{place}": piece for place, piece in enumerate(cast("Sequence[object]", value))}
        elif isinstance(value, Mapping):
            places = {f"{name}.{key}": piece for key, piece in cast("Mapping[str, object]", value).items()}
        for place_name, piece in places.items():
            if isinstance(piece, type):
                raise ValueError(
                    f"{cls.__name__}.{place_name}: got the class {piece.__name__}; need a value: {piece.__name__}(...)"
                )
            if wrong := _wrong_in(cls, name, type(piece)):
                raise ValueError(f"{cls.__name__}.{place_name}: {wrong}")


def _is_piece(value: object) -> bool:
    """Whether a value is one piece, and no collection."""
    return dataclasses.is_dataclass(value) or callable(value)


@cache
def _piece_fields(cls: type) -> dict[str, bool]:
    """The fields that hold pieces, and whether each holds several."""
    types = get_type_hints(cls)
    return {name: element_of(kind) is not None for name, kind in types.items() if wants_piece(kind)}


@cache
def _wrong_in(owner: type, name: str, cls: type) -> str:
    """The reason why a piece of class `cls` does not fit a field of a class; "" when it fits."""
    return wrong_kind(get_type_hints(owner)[name], cls)


def _parts(annotation: Any) -> Iterator[Any]:
    """A type, and the types inside it."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _is_kind(annotation: Any) -> bool:
    kind: Any = get_origin(annotation) or annotation
    return inspect.isclass(kind) and (dataclasses.is_dataclass(kind) or _is_protocol(kind))


def _is_protocol(kind: type) -> bool:
    return bool(getattr(cast("Any", kind), "_is_protocol", False))


@cache
def _reason(kind: type, cls: type) -> str:
    """The reason why `cls` is not of `kind`; "" when it is."""
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    if not _is_protocol(kind):
        return "" if issubclass(cls, kind) else f"got {cls.__name__}; need {article} {kind.__name__}"
    members = _members(kind)
    own = set(dir(cls)) | set(cast("Mapping[str, object]", getattr(cls, "__dataclass_fields__", {})))
    if lacking := sorted(members.keys() - own):
        return f"got {cls.__name__}, which lacks {', '.join(lacking)}; need {article} {kind.__name__}"
    for name, wanted in members.items():
        given = getattr(cls, name, None)
        if inspect.isfunction(wanted) and inspect.isfunction(given) and not _alike(wanted, given):
            return (
                f"got {cls.__name__}, whose {name} takes {_written(given)}; need {article} {kind.__name__}, whose "
                f"{name} takes {_written(wanted)}"
            )
    return ""


def _members(protocol: type) -> dict[str, object]:
    """The members that a protocol requires, by name."""
    return {
        name: member
        for base in reversed(protocol.__mro__)
        if _is_protocol(base)
        for name, member in vars(base).items()
        if not name.startswith("_") or name == "__call__"
    }


def _alike(wanted: Callable[..., Any], given: Callable[..., Any]) -> bool:
    """Whether the signature of `given` is compatible with that of `wanted`."""
    want, have = _signature(wanted), _signature(given)
    is_async = inspect.iscoroutinefunction(wanted)
    if is_async != inspect.iscoroutinefunction(given) and not (is_async and "Awaitable" in str(have.return_annotation)):
        return False
    several = [each for each in want.parameters.values() if each.kind is not each.VAR_POSITIONAL]
    try:
        bound = have.bind(
            *[each for each in several if each.kind is not each.KEYWORD_ONLY],
            **{each.name: each for each in several if each.kind is each.KEYWORD_ONLY},
        )
    except TypeError:
        return False
    pairs = [(value, have.parameters[name]) for name, value in bound.arguments.items()]
    if not all(_meet(one.annotation, other.annotation) for one, other in pairs if isinstance(one, inspect.Parameter)):
        return False
    return _returns(want.return_annotation, have.return_annotation)


def _returns(wanted: Any, given: Any) -> bool:
    """Whether return annotations are compatible; protocols and classes that are not imported are not compared."""
    if (wanted is None) != (given is None):
        return given is inspect.Signature.empty or wanted is inspect.Signature.empty
    named = {*_leaves(wanted), *_leaves(given)}
    return any(isinstance(leaf, str) or _is_protocol(leaf) for leaf in named) or _meet(wanted, given)


def _signature(method: Callable[..., Any]) -> inspect.Signature:
    """The signature, with string annotations evaluated if all their names are imported at run time."""
    try:
        return inspect.signature(method, eval_str=True)
    except (NameError, AttributeError):
        return inspect.signature(method)


def _meet(one: Any, other: Any) -> bool:
    """Whether two annotations share a class, or have a class and its subclass; True when one names no class."""
    ones, others = set(_leaves(one)), set(_leaves(other))
    return not ones or not others or any(_related(this, that) for this in ones for that in others)


def _leaves(annotation: Any) -> Iterator[Leaf]:
    """The classes that an annotation names inside its containers."""
    for part in _parts(annotation):
        if isinstance(part, ForwardRef | str):
            text = part.__forward_arg__ if isinstance(part, ForwardRef) else part
            names = [dotted.rpartition(".")[2] for dotted in re.findall(r"[A-Za-z_][\w.]*", text)]
            yield from (name for name in names if name not in CONTAINERS and name != "None")
        elif inspect.isclass(part) and not get_args(part) and part.__name__ not in CONTAINERS:
            yield from () if part in (NoneType, inspect.Parameter.empty) else (part,)


def _related(one: Leaf, other: Leaf) -> bool:
    if object in (one, other) or Any in (one, other) or (one in NUMBERS and other in NUMBERS):
        return True
    if isinstance(one, str) or isinstance(other, str):
        return _name(one) == _name(other)
    # A class may have the members of a protocol without naming it.
    return one in other.__mro__ or other in one.__mro__ or _is_protocol(one) != _is_protocol(other)


def _name(leaf: Leaf) -> str:
    return leaf if isinstance(leaf, str) else leaf.__name__


def _written(method: Callable[..., Any]) -> str:
    """Its arguments, without `self`, and whether it returns something: (rewarded: Sequence[Rewarded])."""
    signature = inspect.signature(method)
    taken = list(signature.parameters.values())[1:]
    text = re.sub(r"[A-Za-z_][\w.]*\.", "", ", ".join(map(str, taken)).replace("'", ""))
    awaited = "async " if inspect.iscoroutinefunction(method) else ""
    return f"{awaited}({text})" + (" and returns None" if signature.return_annotation is None else "")
