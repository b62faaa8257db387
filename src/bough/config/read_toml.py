"""Reads settings from TOML: tables are pieces, texts are as on the command line."""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

from bough.config.config import FROM, PIECE, ConfigError, build, check, fields_of, find_class, is_piece, load
from bough.config.fields import short_names
from bough.config.kinds import element_of, item_of, wants_piece
from bough.config.naming import find_piece
from bough.config.override import default_of, make, read
from bough.nearest import unknown


def read_tables(path: Path, where: str) -> dict[str, object]:
    """The tables of a TOML file.

    Args:
        path: The file.
        where: The option that names it, for messages.

    Raises:
        ConfigError: when the file is no TOML.
        OSError: when it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} {path}: got no TOML ({error}); need lines FIELD = VALUE and tables") from error


def from_toml(tables: Mapping[str, object], cls: type, now: object = None) -> Any:
    """A dataclass with the settings of TOML tables.

    A table is a piece; its key `piece` names the class, as `bough list` does or as `module:Class`, and without it the
    fields of the present piece change. A text is a value as on the command line, so that "none" is no value, and
    "'none'" this text. The names of groups are optional, as on the command line.

    Args:
        tables: The tables.
        cls: The dataclass.
        now: Its present value; None when the tables have all settings without a default.

    Raises:
        ConfigError: when a field is unknown, missing, given twice, or does not take its value; names it.
    """
    known, nested = short_names(cls), dict[str, object]()
    for name, value in tables.items():
        if name not in known:
            raise ConfigError(f"{name}: {unknown(name, known)} in {cls.__name__}")
        _put(nested, known[name], value)
    return _fields(cls, nested, now, "")


def _put(nested: dict[str, object], path: tuple[str, ...], value: object) -> None:
    """Put a value in nested tables at a path; two tables at one path become one."""
    for name in path[:-1]:
        below = nested.setdefault(name, {})
        if not isinstance(below, dict):
            raise ConfigError(f"{name}: got {below!r}; need a table, as {'.'.join(path)} is in it")
        nested = cast("dict[str, object]", below)
    last = path[-1]
    there = nested.get(last)
    if isinstance(there, dict) and isinstance(value, Mapping):
        for name, part in cast("Mapping[str, object]", value).items():
            _put(cast("dict[str, object]", there), (name,), part)
    elif last in nested:
        raise ConfigError(f"{last}: got it twice, as a field and in the table of its group; need it once")
    else:
        nested[last] = dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else value


def _fields(cls: type, table: Mapping[str, object], now: object, where: str) -> Any:
    """A piece of a class with the fields of a table; the others are those of `now`, if it has this class."""
    known, is_now = fields_of(cls), type(now) is cls
    base = {each.name: getattr(now, each.name) if is_now else default_of(each) for each in dataclasses.fields(cls)}
    given: dict[str, object] = {name: base[name] for name in known} if is_now else {}
    for name, value in table.items():
        place = f"{where}.{name}" if where else name
        if name not in known:
            raise ConfigError(f"{place}: {unknown(name, known)} in {cls.__name__}")
        given[name] = read_entry(known[name], value, base[name], place)
    return build(cls, given, where)


def read_entry(annotation: Any, entry: object, now: object, where: str) -> Any:
    """The value of an entry of a table, given the type of its field and its present value.

    Raises:
        ConfigError: when the field does not take it.
    """
    if isinstance(entry, str):
        return read(entry, now, annotation, where)
    if not wants_piece(annotation):
        return check(annotation, load(entry, where), where)
    if isinstance(entry, list):
        element, items = element_of(annotation), enumerate(cast("list[object]", entry))
        return check(annotation, tuple(read_entry(element, each, None, f"{where}.{at}") for at, each in items), where)
    if not isinstance(entry, Mapping):
        return check(annotation, entry, where)
    table = cast("Mapping[str, object]", entry)
    if (item := item_of(annotation)) is not None and PIECE not in table:
        held = dict(cast("Mapping[str, object]", now)) if isinstance(now, Mapping) else dict[str, object]()
        read_items = {name: read_entry(item, each, held.get(name), f"{where}.{name}") for name, each in table.items()}
        return check(annotation, {**held, **read_items}, where)
    return check(annotation, _piece(annotation, table, now, where), where)


def _piece(annotation: Any, table: Mapping[str, object], now: object, where: str) -> Any:
    """The piece of a table."""
    fields = {name: value for name, value in table.items() if name not in (PIECE, FROM)}
    if PIECE not in table:
        cls = type(now) if is_piece(now) else class_of(annotation)
        if cls is None:
            raise ConfigError(f"{where}: got a table without {PIECE}; need {PIECE} = NAME, see `bough list`")
        return _fields(cls, fields, now, where)
    name, folder = str(table[PIECE]), table.get(FROM)
    if ":" in name:
        return _fields(find_class(name, None if folder is None else Path(str(folder)), where), fields, None, where)
    made: object = make(find_piece(name, None, now, annotation, where), "", where)
    return _fields(type(made), fields, made, where)


def class_of(annotation: Any) -> type | None:
    """The only dataclass in a type, `Warmup` of `Warmup | None`; None where there is none, or several."""
    found = [part for part in (annotation, *get_args(annotation)) if isinstance(part, type)]
    classes = [part for part in found if dataclasses.is_dataclass(part)]
    return classes[0] if len(classes) == 1 else None
