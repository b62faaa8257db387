"""Settings that are a number or a schedule of the run's progress."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from bough.checks import field_types, type_parts

Settings = TypeVar("Settings")
Value = TypeVar("Value")

SAMPLES = 17
"""Numbers of a schedule at which the bounds of its field are checked, both ends included."""

PLAIN = (int, float, str, tuple, bool, NoneType)
"""Classes of values that are no schedules: before Python 3.12 `isinstance` of a protocol takes long."""


@runtime_checkable
class ValueSchedule(Protocol):
    """A number as a function of a run's progress."""

    def at_progress(self, progress: float) -> float:
        """Returns the number at a progress from 0, the first step, to 1, the end."""
        ...


FloatOrSchedule: TypeAlias = float | ValueSchedule
IntOrSchedule: TypeAlias = int | ValueSchedule


def constant(value: Value | ValueSchedule) -> Value:
    """Returns the number of a setting without a schedule, as in the result of `settings_at`.

    Raises:
        ValueError: for a schedule.
    """
    if type(value) not in PLAIN and isinstance(value, ValueSchedule):
        raise ValueError(f"got {value}; need a number: only the run's own sampling and limits can follow a schedule")
    return cast("Value", value)


def number_at(value: FloatOrSchedule, progress: float) -> float:
    """Returns the number of a setting at a progress from 0 to 1."""
    return value.at_progress(progress) if isinstance(value, ValueSchedule) else value


def samples_of(value: Value | ValueSchedule) -> list[Value]:
    """Returns a setting's values along a run: `SAMPLES` numbers of a schedule, evenly spaced; else the value alone."""
    if type(value) in PLAIN or not isinstance(value, ValueSchedule):
        return [cast("Value", value)]
    return cast("list[Value]", [value.at_progress(step / (SAMPLES - 1)) for step in range(SAMPLES)])


def fields_of_group(driven: Mapping[str, float] | None, group: str) -> dict[str, float]:
    """Selects the numbers of a group: from {"limits.turns": 6} the group "limits" has {"turns": 6}."""
    return {
        name.removeprefix(f"{group}."): each for name, each in (driven or {}).items() if name.startswith(f"{group}.")
    }


def settings_at(settings: Settings, progress: float, driven: Mapping[str, float] | None = None) -> Settings:
    """Replaces each schedule by its number at a progress; fields of type int take the rounded number.

    Args:
        settings: A dataclass.
        progress: From 0, the first step, to 1, the end.
        driven: By field, numbers in the place of the field's number or schedule.

    Raises:
        ValueError: when a number is out of the bounds of its field.
    """
    assert is_dataclass(settings)
    types = field_types(type(settings))
    found: dict[str, Any] = {}
    for name in (each.name for each in fields(settings)):
        value: object = (driven or {}).get(name, getattr(settings, name))
        if name in (driven or {}) or (type(value) not in PLAIN and isinstance(value, ValueSchedule)):
            number = number_at(cast("float", value), progress)
            found[name] = round(number) if int in type_parts(types[name]) else number
    return cast("Settings", replace(cast("Any", settings), **found)) if found else settings
