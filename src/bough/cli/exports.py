"""The classes and functions that the packages of pieces export, and the fields that take them."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

from bough.config.installed import loadable
from bough.config.kinds import wants_piece, wrong_kind
from bough.config.naming import ROOMS, exported, made_by, packages


@cache
def exports() -> Mapping[str, tuple[str, Any]]:
    """Each exported class and function with its package, by name; of two with one name the first."""
    found: dict[str, tuple[str, Any]] = {}
    for package in (package for room in ROOMS for package in packages(room)):
        for name, value in exported(package):
            found.setdefault(name, (package, value))
    for name, value in loadable("bough.pieces"):
        found.setdefault(name, (value.__module__, value))
    return found


def usage(name: str, value: Any) -> str:
    """The fields that take what an exported class or function makes; without such a field, its import."""
    made = made_by(value)
    fields = [] if made is None else sorted(set(_fields_for(made)))
    if fields:
        return f"A value of {', '.join(fields)}: write `FIELD={name}` or `FIELD={name}(name=value)`."
    kind = "A function for Python files" if inspect.isfunction(value) else "A class of Python code"
    return f"{kind}: from {exports()[name][0]} import {value.__name__}."


def _fields_for(made: type) -> Iterator[str]:
    """`Class.field` of each exported dataclass with a field of which `made` is a value."""
    for name, (_, owner) in exports().items():
        if not (inspect.isclass(owner) and dataclasses.is_dataclass(owner)):
            continue
        try:
            types = get_type_hints(owner)
        except NameError:
            continue  # a type that is imported for type checkers alone
        for each in dataclasses.fields(owner):
            if each.init and wants_piece(types[each.name]) and not wrong_kind(types[each.name], made):
                yield f"{name}.{each.name}"
