"""Which classes can stand in a field."""
# ruff: noqa: ARG002

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bough.config.kinds import element_of, wants_piece, wrong_kind
from bough.credit import Grpo

if TYPE_CHECKING:
    from bough.tree import Tree


class Base:
    pass


class Derived(Base):
    pass


class Kind(Protocol):
    @property
    def needs(self) -> frozenset[str]: ...

    def __call__(self, one: Sequence[Base], *, two: float = 0.0) -> list[Base]: ...


class Waits(Protocol):
    async def __call__(self, one: Base) -> None: ...


class Named(Protocol):
    def __call__(self, one: "Sequence[Tree]") -> None: ...


@dataclass
class Fits:
    needs: frozenset[str] = frozenset()

    def __call__(self, other: list[Derived], *, two: int = 0, more: bool = False) -> list[Derived]:
        return other


@dataclass
class Bare(Fits):
    def __call__(self, one, two=None):
        return one


@dataclass
class Loose(Fits):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args


@dataclass
class OtherType(Fits):
    def __call__(self, one: Sequence[str], *, two: float = 0.0) -> list[Base]:
        return []


@dataclass
class OtherResult(Fits):
    def __call__(self, one: Sequence[Base], *, two: float = 0.0) -> None:
        return None


@dataclass
class TooMany(Fits):
    def __call__(self, one: Sequence[Base], more: int, *, two: float = 0.0) -> list[Base]:
        return []


@dataclass
class Async(Fits):
    async def __call__(self, one: Sequence[Base], *, two: float = 0.0) -> list[Base]:
        return []


@dataclass
class Lacks:
    def __call__(self, one: Sequence[Base], *, two: float = 0.0) -> list[Base]:
        return []


@dataclass
class OfTrees:
    def __call__(self, one: "Sequence[Tree]") -> None: ...


@dataclass
class OfGroves:
    def __call__(self, one: "Sequence[RolloutRunner]") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def test_classes_that_fit() -> None:
    assert [wrong_kind(Kind, each) for each in (Fits, Bare, Loose)] == ["", "", ""]
    assert wrong_kind(Kind | None, Fits) == ""
    assert wrong_kind(Sequence[Kind], Fits) == ""
    assert wrong_kind(Grpo | Kind, Fits) == ""
    assert wrong_kind(Kind | None, type(None)) == ""
    assert wrong_kind(float, Fits) == "", "no piece is asked for"


def test_classes_that_do_not_fit() -> None:
    told = "got OtherType, whose __call__ takes (one: Sequence[str], two: float = 0.0); need a Kind, whose "
    assert wrong_kind(Kind, OtherType).startswith(told)
    assert wrong_kind(Kind, OtherResult).startswith("got OtherResult, whose __call__ takes ")
    assert "and returns None" in wrong_kind(Kind, OtherResult)
    assert "more: int" in wrong_kind(Kind, TooMany)
    assert "takes async (" in wrong_kind(Kind, Async)
    assert wrong_kind(Waits, Fits).endswith("need a Waits, whose __call__ takes async (one: Base) and returns None")
    assert wrong_kind(Kind, Lacks) == "got Lacks, which lacks needs; need a Kind"
    assert wrong_kind(Kind, type(None)) == "got NoneType, which lacks __call__, needs; need a Kind"
    assert wrong_kind(Grpo, Fits) == "got Fits; need a Grpo"


def test_names_that_are_not_imported_at_run_time_are_compared_as_names() -> None:
    assert wrong_kind(Named, OfTrees) == ""
    assert wrong_kind(Named, OfGroves) != ""


def test_fields_that_hold_pieces() -> None:
    assert [wants_piece(each) for each in (Kind, Grpo | None, Sequence[Kind], Mapping[str, float], str)] == [
        *(True, True, True, False, False),
    ]
    assert [element_of(each) for each in (Sequence[Kind], tuple[Grpo, ...] | None, Kind, Mapping[str, Kind])] == [
        *(Kind, Grpo, None, None),
    ]
