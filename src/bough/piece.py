"""The decorator `piece`: a frozen dataclass whose fields have their bounds in their types."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import product
from numbers import Real
from types import CellType, FunctionType, NoneType
from typing import Any, TypeVar, cast, dataclass_transform

from bough.checks import CHECKS_FINITE, check_choices, check_finite, check_types, field_types, type_parts
from bough.varying import samples_of

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The allowed values of a field: `Annotated[float, Above(0)]`. None is allowed where the type has it.

    Attributes:
        need: The allowed values in words, for errors and `bough list NAME`.
        wrong: Returns the reason to refuse a value: "got 0; need a number above 0"; "" for an allowed value.
    """

    need: str
    wrong: Callable[[object], str] = field(repr=False, compare=False)


def Numbers(need: str, allows: Callable[[float], bool]) -> Bounds:  # noqa: N802
    """Real numbers for which `allows` is True; it is False for nan."""

    def wrong(value: object) -> str:
        # A bool is an int, and an array of one number compares like a number.
        number = not isinstance(value, bool) and isinstance(value, Real)
        return "" if number and allows(cast("float", value)) else f"got {value!r}; need {need}"

    return Bounds(need, wrong)


def Above(low: float, need: str = "") -> Bounds:  # noqa: N802
    """Numbers above `low`."""
    return Numbers(need or f"a number above {low}", lambda value: value > low)


def AtLeast(low: float, need: str = "") -> Bounds:  # noqa: N802
    """`low` and larger numbers."""
    return Numbers(need or f"at least {low}", lambda value: value >= low)


def AtMost(high: float, need: str = "") -> Bounds:  # noqa: N802
    """`high` and smaller numbers."""
    return Numbers(need or f"at most {high}", lambda value: value <= high)


def Between(low: float, high: float, need: str = "", *, above: bool = False, below: bool = False) -> Bounds:  # noqa: N802
    """Numbers from `low` to `high`; without `low` itself with `above`, without `high` with `below`."""

    def allows(value: float) -> bool:
        return (value > low if above else value >= low) and (value < high if below else value <= high)

    start, end = ("above", "and below" if below else "and up to") if above else ("from", "to below" if below else "to")
    return Numbers(need or f"a number {start} {low} {end} {high}", allows)


def NotEmpty(need: str = "at least one", *, different: bool = False) -> Bounds:  # noqa: N802
    """Texts, sequences and mappings with at least one element; with `different`, each element once."""

    def wrong(value: object) -> str:
        items = cast("Collection[object]", value)
        return f"got {value!r}; need {need}" if not items or (different and len({*items}) < len(items)) else ""

    return Bounds(need, wrong)


def SomeOf(known: Iterable[object], *, empty: bool = False) -> Bounds:  # noqa: N802
    """Sequences of elements of `known`; at least one of them, unless `empty`."""
    names = [*known]
    need = f"some of {', '.join(map(str, names))}" + (", or () for all" if empty else "")

    def wrong(value: object) -> str:
        items = cast("Collection[object]", value)
        return "" if {*items} <= {*names} and (items or empty) else f"got {value!r}; need {need}"

    return Bounds(need, wrong)


def Regex() -> Bounds:  # noqa: N802
    """Texts that are regular expressions."""

    def wrong(value: object) -> str:
        try:
            re.compile(cast("str", value))
        except (re.error, TypeError) as error:
            return f"got {value!r} ({error}); need a regular expression"
        return ""

    return Bounds("a regular expression", wrong)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def piece(cls: type[Made]) -> type[Made]:
    """A frozen dataclass with keyword-only fields and slots, which checks its fields when it is made.

    The checks run in this order: values of a `Literal`; the types of numbers, texts and tuples; bounds; the class's
    `__post_init__`, its own or inherited, which relates fields; `check_finite`, which refuses nan and inf. Each raises
    a ValueError that names the class and the field.

    Examples:
        >>> @piece
        ... class Discount:
        ...     gamma: Annotated[float, Between(0, 1)] = 0.9
        >>> Discount(gamma=2.0)
        Traceback (most recent call last):
        ValueError: Discount.gamma: got 2.0; need a number from 0 to 1
    """
    own = cast("Callable[..., None] | None", getattr(cls, "__post_init__", None))
    cell = _class_cell(cls)

    def check(self: Any, *init_only: Any) -> None:
        check_choices(self)
        check_types(self)
        check_bounds(self)
        if own is not None:
            own(self, *init_only)
        check_finite(self)

    setattr(check, CHECKS_FINITE, True)
    cls.__post_init__ = check  # pyright: ignore[reportAttributeAccessIssue]
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    if cell is not None:
        # `dataclass` makes a second class, with slots; `super()` in its methods must find this one.
        cell.cell_contents = made
    return made


def _class_cell(cls: type) -> CellType | None:
    """The closure cell from which `super()` reads the class, shared by all methods; None without a `super()`."""
    for member in vars(cls).values():
        function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
        if isinstance(function, FunctionType) and "__class__" in function.__code__.co_freevars:
            return (function.__closure__ or ())[function.__code__.co_freevars.index("__class__")]
    return None


def check_bounds(settings: object) -> None:
    """Check the fields of a dataclass whose types have bounds.

    Raises:
        ValueError: names the first field out of its bounds.
    """
    for name, (bounds, optional) in bounds_of(type(settings)).items():
        given: object = getattr(settings, name)
        if given is None and optional:
            continue
        for each, value in product(bounds, samples_of(given)):
            if reason := each.wrong(value):
                got = reason if value is given else f"got {given!r}; need {each.need}"
                raise ValueError(f"{type(settings).__name__}.{name}: {got}{', or None' if optional else ''}")


@cache
def bounds_of(cls: Any) -> Mapping[str, tuple[tuple[Bounds, ...], bool]]:
    """By name of a field with bounds, the bounds, and whether the field may be None."""
    found: dict[str, tuple[Bounds, ...]] = {}
    # A field that a subclass declares again, with another default, keeps its bounds.
    for base in reversed(cls.__mro__[:-1]):
        for name, kind in field_types(base).items():
            if own := tuple(each for each in type_parts(kind) if isinstance(each, Bounds)):
                found[name] = own
    types = field_types(cls)
    names = [each.name for each in fields(cls) if each.name in found]
    return {name: (found[name], NoneType in type_parts(types.get(name))) for name in names}
