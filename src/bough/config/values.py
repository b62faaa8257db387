"""Checks of the values in a run's settings: finite numbers, and one of the values of a `Literal`."""

from collections.abc import Iterator
from dataclasses import is_dataclass

from bough.checks import EMPTY, parts, wrong_choices, wrong_numbers
from bough.config.config import ConfigError


def check_values(piece: object, where: str = "") -> None:
    """Check the fields of a piece and of its nested pieces.

    Refuses nan, inf in fields without `INFINITE`, and in a field whose type is a `Literal` all other values.

    Raises:
        ConfigError: names the first such field, its value, and the values that it takes.
    """
    for wrong in (wrong_numbers(piece, where), _wrong_choices(piece, where)):
        for place, reason in wrong:
            raise ConfigError(f"{place}: {reason}")


def _wrong_choices(value: object, where: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each value that its `Literal` does not have, and the reason."""
    if is_dataclass(value) and not isinstance(value, type):
        yield from ((_dotted(where, name), reason) for name, reason in wrong_choices(value))
    for name, part, _ in parts(value):
        if not isinstance(part, (*EMPTY, float)):
            yield from _wrong_choices(part, _dotted(where, name))


def _dotted(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
