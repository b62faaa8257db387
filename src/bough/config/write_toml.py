"""Writes settings as TOML, from which `from_toml` makes equal ones."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import Any, cast

from bough.config.config import ConfigError, address_of, dump, fields_of, is_piece
from bough.config.fields import leaf_fields
from bough.config.kinds import element_of, item_of
from bough.config.read_toml import class_of, read_entry

BARE = re.compile(r"[A-Za-z0-9_-]+")
"""Keys that need no quotes."""

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class _Table(dict[str, object]):
    """A table with a header; any other mapping is written in one line."""


def to_toml(settings: object) -> str:
    """All fields of a dataclass and of its groups as TOML, under their short names.

    Raises:
        ConfigError: when a value has no form in TOML that is read as the same value; names its field.
    """
    root, cls = _Table(), type(settings)
    for name, path in leaf_fields(cls).items():
        owner = reduce(getattr, path[:-1], settings)
        *above, last = name.split(".")
        table = root
        for group in above:
            table = cast("_Table", table.setdefault(group, _Table()))
        table[last] = _entry(getattr(owner, path[-1]), fields_of(type(owner))[path[-1]], name)
    return "\n".join(_lines(root, ())).strip() + "\n"


def _entry(value: object, annotation: Any, where: str) -> object:
    """A value as numbers, texts, lists and tables."""
    if is_piece(value):
        return _piece(value, annotation, where)
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        if any(map(is_piece, named.values())):
            item = item_of(annotation) or Any
            return _Table({name: _entry(each, item, f"{where}.{name}") for name, each in named.items()})
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        if any(map(is_piece, items)):
            element = element_of(annotation) or Any
            return [_entry(each, element, f"{where}.{place}") for place, each in enumerate(items)]
    elif isinstance(value, bool | int | float):
        return value
    return _plain(cast("object", value), annotation, where)


def _piece(value: object, annotation: Any, where: str) -> _Table:
    cls = type(value)
    fields = fields_of(cls)
    address = {} if cls is class_of(annotation) else address_of(cls)
    return _Table(address | {name: _entry(getattr(value, name), fields[name], f"{where}.{name}") for name in fields})


def _plain(value: object, annotation: Any, where: str) -> object:
    """A text, None, or a value without pieces, in the first form that is read as the same value."""
    plain = dump(value)
    native = [] if plain is None else [_native(value)]
    quoted = ["none" if plain is None else repr(plain) if isinstance(plain, str) else json.dumps(plain)]
    for form in (form for form in (*native, *quoted) if not _has_none(form)):
        with suppress(ConfigError):
            if dump(read_entry(annotation, form, None, where)) == plain:
                return form
    raise ConfigError(f"{where}: got {value!r:.100}, for which TOML has no form; give the run this setting by a change")


def _native(value: object) -> object:
    """A value without pieces as TOML has it; paths and the values of enumerations are texts, infinity is a number."""
    if isinstance(value, Mapping):
        return {str(key): _native(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_native(item) for item in cast("Sequence[object]", value)]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


def _has_none(value: object) -> bool:
    """Whether None is in a value: TOML has no such value."""
    if isinstance(value, Mapping):
        return any(map(_has_none, cast("Mapping[str, object]", value).values()))
    return value is None or (isinstance(value, list) and any(map(_has_none, cast("list[object]", value))))


def _lines(table: _Table, path: tuple[str, ...]) -> Iterator[str]:
    """The lines of a table: its plain values first, as TOML needs it, then the tables in it."""
    below = {name: value for name, value in table.items() if isinstance(value, _Table) or _is_tables(value)}
    yield from (f"{_key(name)} = {_value(value)}" for name, value in table.items() if name not in below)
    for name, value in below.items():
        place = (*path, name)
        header = ".".join(map(_key, place))
        if isinstance(value, _Table):
            yield from ("", f"[{header}]", *_lines(value, place))
            continue
        for each in cast("list[_Table]", value):
            yield from ("", f"[[{header}]]", *_lines(each, place))


def _is_tables(value: object) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return bool(items) and all(isinstance(each, _Table) for each in items)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    """A value in one line; a text of several lines as such."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        lines = value.split("\n")
        return _text(value) if len(lines) == 1 else '"""\n' + "\n".join(_text(line)[1:-1] for line in lines) + '"""'
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{_key(name)} = {_in_line(each)}" for name, each in pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_in_line, cast("list[object]", value))) + "]"
    return repr(value)


def _in_line(value: object) -> str:
    return _text(value) if isinstance(value, str) else _value(value)


def _text(text: str) -> str:
    """A text in quotes, with escapes."""
    written = (
        ESCAPES.get(each) or (each if each >= " " and each != "\x7f" else f"\\u{ord(each):04x}") for each in text
    )
    return f'"{"".join(written)}"'
