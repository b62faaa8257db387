"""Pages of `bough list` for exported names that are no piece of their own: sources, helpers, functions."""

import dataclasses
import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

from bough.config.kinds import wants_piece, wrong_kind
from bough.config.naming import ROOMS, made_by


@cache
def helpers() -> Mapping[str, tuple[str, Any]]:
    """Each exported class and function with its package, by name."""
    found: dict[str, tuple[str, Any]] = {}
    for package in (f"bough.{room}" for room in ROOMS):
        module = importlib.import_module(package)
        for name in module.__all__:
            value = vars(module).get(name)  # names that a package imports on first use are left out
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(name, (package, value))
    return found


def where_used(value: Any) -> str:
    """The fields that take what a class or function makes; for others how to use them."""
    made = made_by(value)
    fields = [] if made is None else sorted(set(_fields_for(made)))
    if fields:
        return (
            f"A value of {', '.join(fields)}: write `FIELD={value.__name__}` or `FIELD={value.__name__}(name=value)`."
        )
    if inspect.isfunction(value):
        return f"A function for Python files: from {helpers()[value.__name__][0]} import {value.__name__}."
    return f"A class of Python code: from {helpers()[value.__name__][0]} import {value.__name__}."


def _fields_for(made: type) -> Iterator[str]:
    """`Class.field` of each exported dataclass with a field of which `made` is a value."""
    for name, (_, owner) in helpers().items():
        if not (inspect.isclass(owner) and dataclasses.is_dataclass(owner)):
            continue
        try:
            types = get_type_hints(owner)
        except NameError:
            continue  # a type that is imported for type checkers alone
        for each in dataclasses.fields(owner):
            if each.init and wants_piece(types[each.name]) and not wrong_kind(types[each.name], made):
                yield f"{name}.{each.name}"
