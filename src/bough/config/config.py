"""Serializes runs as JSON: every piece with its fields, exactly."""

import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from bough.config.kinds import NOT_FINITE, element_of, item_of, number_of, wants_piece, wrong_kind
from bough.nearest import unknown
from bough.usercode import load_module
from bough.usercode.load import PREFIX, import_folder, import_from
from bough.usercode.origin import describe

PIECE = "piece"
"""The key under which a JSON object names its dataclass, as `module:Class` or `file.py:Class`."""

FROM = "from"
"""The key of the folder from which the module of a piece is imported, for modules that are not installed.

`from` is a Python keyword, so no field has this name.
"""


EARLIER = ". It is of another version of Bough: continue the run with that version (its manifest.json), or train again"
"""Follows the reason why a piece of Bough is not found."""


class ConfigError(ValueError):
    """An invalid configuration. The message names the field, and a valid value."""


def dump(value: object) -> Any:
    """`value` as JSON values. Dataclasses become objects with their `piece` and all fields; infinity becomes "inf"."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: dump(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return {**address_of(type(value)), **fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [dump(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, type):
        raise ConfigError(f"got the class {value.__name__} in the configuration; need a value: {value.__name__}(...)")
    raise ConfigError(
        f"got a {type(value).__name__} in the configuration; need dataclasses, numbers, texts, lists and mappings: "
        "write @dataclass(frozen=True, kw_only=True) above an environment or piece of your own"
    )


def load(data: object, where: str = "") -> Any:
    """The value from the result of `dump`.

    Raises:
        ConfigError: on an unknown piece or field, or a value of the wrong type; names where.
    """
    if isinstance(data, Mapping):
        items = cast("Mapping[str, object]", data)
        if PIECE not in items:
            return {key: load(item, f"{where}.{key}".lstrip(".")) for key, item in items.items()}
        folder = items.get(FROM)
        cls = find_class(str(items[PIECE]), None if folder is None else Path(str(folder)), where)
        fields = {key: item for key, item in items.items() if key not in (PIECE, FROM)}
        given = {key: load(item, f"{where}.{key}".lstrip(".")) for key, item in fields.items()}
        return build(cls, given, where)
    if isinstance(data, list):
        return tuple(load(item, f"{where}.{place}") for place, item in enumerate(cast("list[object]", data)))
    return data


def build(cls: type, given: Mapping[str, object], where: str) -> Any:
    """Build a piece from field values, each checked against the type of its field."""
    name_of_class = cls.__name__
    if not dataclasses.is_dataclass(cls):
        raise ConfigError(
            f"{where or name_of_class}: got {name_of_class}, which is no dataclass; write @dataclass(frozen=True, "
            "kw_only=True) above the class, with its settings as fields"
        )
    known = fields_of(cls)
    for name in given:
        if name not in known:
            raise ConfigError(f"{_dotted(where, name)}: {unknown(name, known)} in {cls.__name__}")
    if lacking := [name for name in _required(cls) if name not in given]:
        words = ", ".join(f"{name}=..." for name in lacking)
        raise ConfigError(
            f"{where or 'run'}: got {cls.__name__} without {', '.join(lacking)}; need {cls.__name__}({words})"
        )
    checked = {name: check(known[name], value, _dotted(where, name)) for name, value in given.items()}
    try:
        return cls(**checked)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where or cls.__name__}: {error}") from error


@cache
def fields_of(cls: type) -> Mapping[str, Any]:
    """The type of each settable field of a dataclass."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def _required(cls: Any) -> list[str]:
    missing = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(cls)
        if field.init and field.default is missing and field.default_factory is missing
    ]


def check(annotation: Any, value: object, where: str) -> Any:
    """`value` converted to the field's type: an int for a float field becomes a float, a list becomes a tuple.

    A piece must be of the field's kind; its fields are checked by its constructor.
    """
    numbers = number_of(annotation)
    if numbers is not None and (isinstance(value, (int, float)) or str(value).lower() in NOT_FINITE):
        return check(numbers, value, where)
    if wants_piece(annotation):
        _check_piece(annotation, value, where)
        return value
    try:
        checked = _adapter(annotation, str(annotation)).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        inner = "".join(f".{part}" for part in first["loc"] if isinstance(part, int))
        raise ConfigError(
            f"{where}{inner}: got {value!r}; {first['msg'].replace('Input should be', 'need')}"
        ) from error
    if isinstance(value, bool) and not isinstance(checked, bool):
        raise ConfigError(f"{where}: got {value!r}; need a number")
    if isinstance(checked, float) and math.isnan(checked):
        raise ConfigError(f"{where}: got nan; need a number")
    return checked


@cache
def _adapter(annotation: Any, text: str) -> TypeAdapter[Any]:
    """The converter to a type. Its text tells unions apart that are equal, but have another order."""
    del text
    return TypeAdapter(annotation, config={"arbitrary_types_allowed": True})


def _check_piece(annotation: Any, value: object, where: str) -> None:
    """Check that a value is a piece, several, or None, as the field's type requires."""
    if value is None and type(None) in get_args(annotation):
        return
    element, item = element_of(annotation), item_of(annotation)
    if item is not None:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: got {_shown(value)}; need pieces by name, as in {{name: Piece(field=value)}}")
        for name, piece in cast("Mapping[str, object]", value).items():
            _check_piece(item, piece, f"{where}.{name}")
    elif element is not None:
        if not isinstance(value, tuple):
            raise ConfigError(f"{where}: got {_shown(value)}; need several pieces, as in [Name, Name(field=value)]")
        for place, item in enumerate(cast("tuple[object, ...]", value)):
            _check_piece(element, item, f"{where}.{place}")
    elif not is_piece(value):
        # A text where a number or a piece belongs is the name of a choice of an earlier version.
        number = "a number or " if number_of(annotation) is not None else ""
        earlier = EARLIER if number and isinstance(value, str) else ""
        raise ConfigError(
            f"{where}: got {_shown(value)}; need {number}a piece, written as Name or Name(field=value){earlier}"
        )
    elif wrong := wrong_kind(annotation, type(value)):
        raise ConfigError(f"{where}: {wrong}")


def is_piece(value: object) -> bool:
    """Whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _shown(value: object) -> str:
    return type(value).__name__ if is_piece(value) else repr(value)


def _dotted(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def address_of(cls: type) -> dict[str, str]:
    """The entries that locate a class: its file, or its module and the folder of a module that is not installed."""
    module, name = sys.modules[cls.__module__], cls.__module__
    file = module.__file__ if hasattr(module, "__file__") else None
    if name == "__main__" and module.__spec__ is not None:
        name = module.__spec__.name  # `python -m name`
    if file is not None and (name.startswith(PREFIX) or name == "__main__"):
        return {PIECE: f"{Path(file).absolute()}:{cls.__name__}"}
    folder = None if file is None else import_folder(name, file)
    return {PIECE: f"{name}:{cls.__name__}", **({FROM: str(folder)} if folder else {})}


def find_class(address: str, folder: Path | None, where: str) -> type:
    """The dataclass with an address of `address_of`.

    Raises:
        ConfigError: when its module cannot be imported, or has no such dataclass.
    """
    place, _, name = address.rpartition(":")
    is_file = place.endswith(".py")
    # A class that has moved since: Bough has no names of earlier versions.
    earlier = EARLIER if place.startswith("bough.") else ""
    try:
        module = load_module(Path(place)) if is_file else import_from(place, folder)
    except Exception as error:
        known = place if is_file else folder
        moved = f". It was at {known} when the run began: put it back, or correct the place in config.json"
        reason = f"{describe(error)}{earlier or (moved if known else '')}"
        raise ConfigError(f"{where or 'run'}: got piece {address!r}, which cannot be imported: {reason}") from error
    found = cast("Any", vars(module).get(name))
    if not (inspect.isclass(found) and dataclasses.is_dataclass(found)):
        raise ConfigError(f"{where or 'run'}: got piece {address!r}; need a dataclass that is in that module{earlier}")
    return found
