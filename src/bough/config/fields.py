"""Fields of a run by their short names: `steps` for `world.schedule.steps`."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from typing import Any, TypeVar, cast, get_type_hints

from bough.config.config import ConfigError, check, fields_of
from bough.config.kinds import wants_piece
from bough.nearest import close, same_initials, suggest, unknown

Settings = TypeVar("Settings")

GROUP = {"group": True}
"""Metadata of a field whose own fields may be named without it: `field(default=Schedule(), metadata=GROUP)`."""

SUGGESTIONS = 3
"""Most nested fields that a message suggests."""


@cache
def short_names(cls: type) -> Mapping[str, tuple[str, ...]]:
    """The path of every field of a dataclass and of its groups, by the field's name.

    A field hides fields of the same name in groups below it.

    Raises:
        TypeError: when two groups on one level have fields of the same name.
    """
    found: dict[str, tuple[str, ...]] = {}
    level: list[tuple[type, tuple[str, ...]]] = [(cls, ())]
    while level:
        paths = [(each.name, (*above, each.name)) for owner, above in level for each in _fields(owner)]
        fresh = [(name, path) for name, path in paths if name not in found]
        if len({name for name, _ in fresh}) < len(fresh):
            raise TypeError(f"{cls.__name__}: got fields of one name in two groups: {sorted(fresh)}")
        found |= dict(fresh)
        level = [(kind, (*above, name)) for owner, above in level for name, kind in _groups(owner)]
    return found


@cache
def leaf_fields(cls: type) -> Mapping[str, tuple[str, ...]]:
    """The path of every field that is no group, by its short name, or by its dotted path if that is hidden."""
    known, found = short_names(cls), dict[str, tuple[str, ...]]()
    pending: list[tuple[type, tuple[str, ...]]] = [(cls, ())]
    while pending:
        owner, above = pending.pop(0)
        groups = dict(_groups(owner))
        for each in _fields(owner):
            path = (*above, each.name)
            if each.name not in groups:
                found[each.name if known[each.name] == path else ".".join(path)] = path
        pending = [(kind, (*above, name)) for name, kind in groups.items()] + pending
    return found


def set_fields(value: Settings, fields: Mapping[str, object]) -> Settings:
    """A copy with fields replaced, each named as in `short_names` and checked as on the command line.

    Raises:
        ConfigError: when no field has this name (suggests similar ones), or a field does not take the value.
    """
    known, types = short_names(type(value)), fields_of(type(value))
    own: dict[str, object] = {}
    nested: dict[str, dict[str, object]] = {}
    for name, given in fields.items():
        if "." in name:
            raise ConfigError(
                f'{name}: got a nested field as a keyword; need it among the changes, ["{name}=..."], or a whole '
                f"value, {name.partition('.')[0]}=..."
            )
        if name not in known:
            raise ConfigError(f"{name}: {unknown_field(value, name)} in {type(value).__name__}")
        path = known[name]
        if len(path) == 1:
            # The kinds of pieces are checked by the dataclass; a list of them is as good as a tuple.
            pieces = tuple(cast("list[object]", given)) if isinstance(given, list) else given
            own[name] = pieces if wants_piece(types[name]) else check(types[name], pieces, name)
        else:
            nested.setdefault(path[0], {})[name] = given
    below = {group: set_fields(own.get(group, getattr(value, group)), changes) for group, changes in nested.items()}
    try:
        return dataclasses.replace(value, **(own | below))  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None


def unknown_field(value: object, name: str) -> str:
    """The message for an unknown field of a dataclass: similar short names, or up to three paths of nested fields.

    A nested field of exactly this name, or with these initials, comes first: "optimizer.learning_rate" for "lr".
    """
    known, nested = short_names(type(value)), _nested(value)
    names = {path.rpartition(".")[2] for path in nested}
    exact = [name] if name in names else same_initials(name, names)
    if exact or not close(name, known):
        near = exact or close(name, names)
        found = sorted((path.count("."), path) for path in nested if path.rpartition(".")[2] in near)
        if found:
            return f"unknown name {name!r}; {suggest(path for _, path in found[:SUGGESTIONS])}"
    return unknown(name, known)


def _nested(value: object) -> list[str]:
    """The paths of the fields inside the fields of a dataclass and of its groups."""
    found: list[str] = []
    pending = [(name, reduce(getattr, path, value)) for name, path in leaf_fields(type(value)).items()]
    while pending:
        path, held = pending.pop(0)
        if dataclasses.is_dataclass(held) and not isinstance(held, type):
            below = [(f"{path}.{each.name}", getattr(held, each.name)) for each in _fields(type(held))]
            found += [inner for inner, _ in below]
            pending += below
        elif isinstance(held, tuple):
            pending += [(f"{path}.{place}", item) for place, item in enumerate(cast("tuple[object, ...]", held))]
    return found


def _fields(cls: Any) -> Iterator[dataclasses.Field[Any]]:
    return (each for each in dataclasses.fields(cls) if each.init)


def _groups(cls: type) -> Iterator[tuple[str, type]]:
    """The name and class of each field that is a group."""
    groups = [each.name for each in _fields(cls) if each.metadata.get("group")]
    return ((name, get_type_hints(cls)[name]) for name in groups)
