"""Fields of a run by their short names: `steps` for `world.schedule.steps`."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, get_type_hints

Settings = TypeVar("Settings")

GROUP = {"group": True}
"""Metadata of a field whose own fields may be named without it: `field(default=Schedule(), metadata=GROUP)`."""


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
    """A copy with fields replaced, each named as in `short_names`.

    Raises:
        TypeError: when no field has this name.
        ValueError: when a field does not take the value.
    """
    known = short_names(type(value))
    own: dict[str, object] = {}
    nested: dict[str, dict[str, object]] = {}
    for name, given in fields.items():
        if name not in known:
            raise TypeError(f"{type(value).__name__}: got the field {name!r}; need one of {', '.join(sorted(known))}")
        path = known[name]
        if len(path) == 1:
            own[name] = given
        else:
            nested.setdefault(path[0], {})[name] = given
    below = {group: set_fields(own.get(group, getattr(value, group)), changes) for group, changes in nested.items()}
    return dataclasses.replace(value, **(own | below))  # pyright: ignore[reportArgumentType, reportUnknownVariableType]


def _fields(cls: Any) -> Iterator[dataclasses.Field[Any]]:
    return (each for each in dataclasses.fields(cls) if each.init)


def _groups(cls: type) -> Iterator[tuple[str, type]]:
    """The name and class of each field that is a group."""
    groups = [each.name for each in _fields(cls) if each.metadata.get("group")]
    return ((name, get_type_hints(cls)[name]) for name in groups)
