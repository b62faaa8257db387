"""Refuses calls that would run forever or need all memory, before they run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bough.tree import ToolCall

DEPTH = 20
"""Maximum depth of lists and objects in the arguments of a call."""

DIGITS = 10_000
"""Maximum number of digits that a call may require."""

FILES = 20_000
"""Maximum number of files and folders that one copy may create."""

TEXT_BITS = 14_285
"""An integer with more bits has more than 4,300 decimal digits, and Python writes none of these."""


def refuse(api: Any, call: ToolCall) -> None:
    """Raises for a call that takes too much time or memory. No call of the package's ground truth is one.

    Args:
        api: The instance that has the function.
        call: The call; its arguments may be of any type.

    Raises:
        ValueError: with the text for the agent.
    """
    arguments = call.arguments
    if _depth(arguments) > DEPTH:
        raise ValueError(f"got arguments with more than {DEPTH} levels; need fewer")
    if call.name == "power":
        base, exponent = arguments.get("base"), arguments.get("exponent")
        if isinstance(base, int) and isinstance(exponent, int) and (base.bit_length() - 1) * exponent > TEXT_BITS:
            raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")
    for name in ("precision", "decimal_places"):
        if call.name in ("logarithm", "square_root", "round_number") and abs(_integer(arguments.get(name))) > DIGITS:
            raise ValueError(f"got {name} beyond {DIGITS}; need less")
    if call.name == "logarithm" and any(isinstance(each, str) for each in arguments.values()):
        raise ValueError("got a text; need a number")
    if call.name == "cp" and _files(api._current_dir.contents.get(arguments.get("source"))) > FILES:
        raise ValueError(f"got a folder with more than {FILES} files and folders; need fewer")


def _depth(value: object) -> int:
    """Levels of lists and mappings, counted up to `DEPTH` + 1."""
    level: list[object] = [value]
    for depth in range(DEPTH + 1):
        level = [each for parent in level for each in _elements(parent)]
        if not level:
            return depth
    return DEPTH + 1


def _elements(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _files(item: Any) -> int:
    """Number of files and folders below a folder, counted up to `FILES` + 1."""
    count, folders = 0, [item]
    while folders and count <= FILES:
        contents = getattr(folders.pop(), "contents", {})
        count += len(contents)
        folders.extend(contents.values())
    return count
