"""Formats the settings of a run as `field=value` lines that `override` parses."""

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import Any, cast

from bough.config.config import is_piece
from bough.config.fields import leaf_fields
from bough.config.installed import loadable
from bough.config.override import NOTHING

WIDTH = 100
"""Values longer than this are written with one argument a line."""

BARE = re.compile(r"[A-Za-z_][\w./+-]*")
"""Strings that need no quotes."""


def settings(run: object) -> str:
    """All fields of a run and of its groups, one `FIELD=VALUE` each, valid as a change for `bough train`."""
    cls = type(run)
    return "\n".join(f"{name}={_value(reduce(getattr, path, run))}" for name, path in leaf_fields(cls).items())


def _value(value: object) -> str:
    if is_piece(value):
        fields = [field.name for field in dataclasses.fields(cast("Any", value)) if field.init]
        return _joined(f"{_name(type(value))}(", (f"{name}={_value(getattr(value, name))}" for name in fields), ")")
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        if any(map(is_piece, named.values())):
            return _joined("{", (f"{name}: {_value(piece)}" for name, piece in named.items()), "}")
        return json.dumps(named)
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        pieces = any(map(is_piece, items))
        return _joined("[", map(_value if pieces else repr, items), "]")
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str | Path) and not isinstance(value, Enum):
        text = str(value)
        bare = BARE.fullmatch(text) and text.lower() not in (*NOTHING, "true", "false")
        return text if bare else repr(text)
    return str(value.value if isinstance(value, Enum) else value)


def _name(cls: type) -> str:
    """The name of a piece; with its file for a piece that is neither Bough's nor an installed package's."""
    if cls.__module__.startswith("bough.") or dict(loadable("bough.pieces")).get(cls.__name__) is cls:
        return cls.__name__
    return f"{sys.modules[cls.__module__].__file__}:{cls.__name__}"


def _joined(begin: str, parts: Iterable[str], end: str) -> str:
    """The parts on one line, or one a line when that is too long."""
    written = list(parts)
    line = begin + ", ".join(written) + end
    if len(line) <= WIDTH and "\n" not in line:
        return line
    indented = ",\n".join(written).replace("\n", "\n    ")
    return f"{begin}\n    {indented},\n{end}"
