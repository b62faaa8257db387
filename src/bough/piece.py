"""The decorator of pieces: frozen dataclasses whose fields have their bounds in their types."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import product
from numbers import Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, dataclass_transform, get_args, get_origin

from bough.checks import check_choices, check_finite, field_types
from bough.varying import samples_of

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The numbers that a field takes: `Annotated[float, Above(0)]`. None is allowed where the type has it.

    Attributes:
        need: What an error names as needed.
        allows: Whether a number is within the bounds; False for nan.
    """

    need: str
    allows: Callable[[float], bool] = field(repr=False, compare=False)


def Above(low: float, need: str = "") -> Bounds:  # noqa: N802
    """Numbers above `low`."""
    return Bounds(need or f"a number above {low}", lambda value: value > low)


def AtLeast(low: float, need: str = "") -> Bounds:  # noqa: N802
    """`low` and larger numbers."""
    return Bounds(need or f"at least {low}", lambda value: value >= low)


def AtMost(high: float, need: str = "") -> Bounds:  # noqa: N802
    """`high` and smaller numbers."""
    return Bounds(need or f"at most {high}", lambda value: value <= high)


def Between(low: float, high: float, need: str = "", *, above: bool = False, below: bool = False) -> Bounds:  # noqa: N802
    """Numbers from `low` to `high`; without `low` itself with `above`, without `high` with `below`."""

    def allows(value: float) -> bool:
        return (value > low if above else value >= low) and (value < high if below else value <= high)

    start, end = ("above", "and below" if below else "and up to") if above else ("from", "to below" if below else "to")
    return Bounds(need or f"a number {start} {low} {end} {high}", allows)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def piece(cls: type[Made]) -> type[Made]:
    """A frozen dataclass with keyword-only fields and slots, which checks its fields when it is made.

    Bounds are checked first, then values of a `Literal`, then the class's `__post_init__`, its own or inherited, which
    relates fields; at last `check_finite` refuses nan and inf.

    Example:
        >>> @piece
        ... class Discount:
        ...     gamma: Annotated[float, Between(0, 1)] = 0.9
        >>> Discount(gamma=2.0)
        Traceback (most recent call last):
        ValueError: Discount.gamma: got 2.0; need a number from 0 to 1
    """
    own = cast("Callable[..., None] | None", getattr(cls, "__post_init__", None))

    def check(self: Any, *init_only: Any) -> None:
        check_bounds(self)
        check_choices(self)
        if own is not None:
            own(self, *init_only)
        check_finite(self)

    cls.__post_init__ = check  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def check_bounds(settings: object) -> None:
    """Check the numbers of a dataclass whose types have bounds.

    Raises:
        ValueError: names the first field out of its bounds.
    """
    for name, (bounds, optional) in bounds_of(type(settings)).items():
        given: object = getattr(settings, name)
        if given is None and optional:
            continue
        for each, value in product(bounds, samples_of(given)):
            # A bool is an int, and an array of one number compares like a number.
            if isinstance(value, bool) or not isinstance(value, Real) or not each.allows(cast("float", value)):
                raise ValueError(f"{type(settings).__name__}.{name}: got {given!r}; need {each.need}")


@cache
def bounds_of(cls: Any) -> Mapping[str, tuple[tuple[Bounds, ...], bool]]:
    """The bounds of the fields of a dataclass that have some, and whether a field may be None."""
    found: dict[str, tuple[Bounds, ...]] = {}
    # A field that a subclass declares again, with another default, keeps its bounds.
    for base in reversed(cls.__mro__[:-1]):
        for name, kind in field_types(base).items():
            if own := tuple(each for each in _parts(kind) if isinstance(each, Bounds)):
                found[name] = own
    types = field_types(cls)
    names = [each.name for each in fields(cls) if each.name in found]
    return {name: (found[name], NoneType in _parts(types.get(name))) for name in names}


def _parts(kind: Any) -> Iterator[Any]:
    """The classes of a type with their bounds, each of a union by itself."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        for each in get_args(kind):
            yield from _parts(each)
    else:
        yield kind
