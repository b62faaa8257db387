"""Settings that vary over a run: a number, or a schedule of the run's progress."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from bough.checks import field_types

Settings = TypeVar("Settings")


@runtime_checkable
class ValueSchedule(Protocol):
    """A number for each progress of a run."""

    def at_progress(self, progress: float) -> float:
        """The number at a progress from 0, the first step, to 1, the end."""
        ...


if TYPE_CHECKING:
    # A run replaces schedules by numbers before other code reads them (`settings_at`).
    Number: TypeAlias = float
    Whole: TypeAlias = int
else:
    Number = float | ValueSchedule
    Whole = int | ValueSchedule


def number_at(value: Number, progress: float) -> float:
    """The number of a setting at a progress."""
    return value.at_progress(progress) if isinstance(value, ValueSchedule) else value


def samples_of(value: object) -> list[object]:
    """A number; for a schedule its numbers along the run, of which the bounds of a field hold."""
    return [value.at_progress(step / 16) for step in range(17)] if isinstance(value, ValueSchedule) else [value]


def fields_of_group(driven: Mapping[str, float] | None, group: str) -> dict[str, float]:
    """Of numbers by setting, such as "limits.turns", those of a group by field, such as "turns"."""
    return {
        name.removeprefix(f"{group}."): each for name, each in (driven or {}).items() if name.startswith(f"{group}.")
    }


def settings_at(settings: Settings, progress: float, driven: Mapping[str, float] | None = None) -> Settings:
    """The settings at a progress: each schedule is replaced by its number, rounded for whole numbers.

    Args:
        settings: A dataclass.
        progress: From 0 to 1.
        driven: By field, numbers that take the place of the field's.
    """
    assert is_dataclass(settings)
    types = field_types(type(settings))
    found: dict[str, Any] = {}
    for name in (each.name for each in fields(settings)):
        value: object = (driven or {}).get(name, getattr(settings, name))
        if name in (driven or {}) or isinstance(value, ValueSchedule):
            number = number_at(cast("float", value), progress)
            found[name] = round(number) if "int" in str(types[name]) else number
    return cast("Settings", replace(cast("Any", settings), **found)) if found else settings
