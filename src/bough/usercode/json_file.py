"""Reads JSON of others, and writes JSON that every reader takes."""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

from bough.usercode.text_file import read_lines, read_text

MOST_DEPTH = 100
"""Objects and lists within each other. Python's own functions fail from about 1,000."""

SHOWN = 80
"""Characters of a text in a message."""

Object: TypeAlias = dict[str, Any]


def parse_json(text: str, *, infinite: bool = False) -> object:
    r"""The value of a JSON text.

    Args:
        text: The text.
        infinite: Whether it may have the numbers NaN and Infinity, as Python writes them.

    Raises:
        ValueError: with the reason: no JSON (which has no NaN and no infinite number), more than `MOST_DEPTH` levels,
            or half of a surrogate pair ("\ud83d"), which no file can hold.
    """
    try:
        value: object = json.loads(text) if infinite else DECODER.decode(text)
        if text.count("[") + text.count("{") > MOST_DEPTH:
            _check_depth(value)
    except RecursionError:
        raise ValueError(f"JSON of more than {MOST_DEPTH} levels") from None
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from error
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"half of a surrogate pair, {error.object[error.start]!r}") from error
    return value


def parse_object(text: str, where: str, need: str) -> Object:
    """The object of a JSON text.

    Args:
        text: The text.
        where: Its place, for the message.
        need: What it has to be, for the message.

    Raises:
        ValueError: when it is none; names the place.
    """
    try:
        value = parse_json(text)
        if not isinstance(value, dict):
            raise ValueError("no object")
    except ValueError as error:
        raise ValueError(f"{where}: got {shown(text)} ({error}); need {need}") from error
    return cast("Object", value)


def read_objects(file: Path, need: str) -> Iterator[tuple[str, Object]]:
    """The objects of a file of JSON lines, each after its place, "FILE, line 3"; empty lines are skipped.

    Raises:
        OSError: when the file cannot be read.
        ValueError: when a line is no object; names it.
    """
    return ((where, parse_object(line, where, need)) for where, line in read_lines(file))


def read_json(file: Path, need: str = "JSON", *, infinite: bool = False) -> object:
    """The value of a JSON file.

    Raises:
        OSError: when the file cannot be read.
        ValueError: when it is no JSON; names the file.
    """
    try:
        return parse_json(read_text(file), infinite=infinite)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(str(file)) else f"{file}: got {text}; need {need}") from error


def read_object(file: Path, need: str = "a JSON object", *, infinite: bool = False) -> Object:
    """The object of a JSON file; raises as `read_json`, also for another value."""
    value = read_json(file, need, infinite=infinite)
    if not isinstance(value, dict):
        raise ValueError(f"{file}: got a {type(value).__name__}; need {need}")
    return cast("Object", value)


def json_text(value: object, *, indent: int | None = None, ascii_only: bool = True) -> str:
    """A value as JSON; a number that is not finite is written as null.

    Raises:
        TypeError: when it holds a value that JSON cannot write.
    """
    try:
        return json.dumps(value, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(plain, indent=indent, ensure_ascii=ascii_only, allow_nan=False)


def shown(text: str) -> str:
    """The beginning of a text, for a message."""
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}..."


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _float(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{shown(digits)} is no finite number")
    return value


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [*chain.from_iterable(map(_parts, level))]
        if not level:
            return
    raise RecursionError


def _parts(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return [*cast("Mapping[str, object]", value).values()]
    return cast("list[object]", value) if isinstance(value, list) else []


DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_float)
