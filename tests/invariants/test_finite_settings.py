"""Every setting of every piece that is a number refuses nan and inf, and the error names it."""

import dataclasses
import importlib
import inspect
import math
import typing
from collections.abc import Callable, Iterator

import pytest

from bough.appraise import AnswerProbe, FactGain
from bough.checks import INFINITE, check_finite
from bough.reward import BoxScore

PLACES = ("reward", "hooks", "credit", "objective", "curate", "appraise")
DATA = {"Continuation", "LossInputs", "Question", "Reply", "Scoring"}
"""Dataclasses that are no settings: they have fields without defaults."""


def numbers() -> Iterator[tuple[type, str]]:
    """The fields that are numbers, or tuples of numbers, of all pieces."""
    for place in PLACES:
        module = importlib.import_module(f"bough.{place}")
        for name in sorted(module.__all__):
            piece = getattr(module, name)
            if not inspect.isclass(piece) or not dataclasses.is_dataclass(piece) or name in DATA:
                continue
            types = typing.get_type_hints(piece)
            for each in dataclasses.fields(piece):
                kind = types[each.name]
                single = kind is float or (float in typing.get_args(kind) and type(None) in typing.get_args(kind))
                if each.init and (single or (typing.get_origin(kind) is tuple and float in typing.get_args(kind))):
                    yield piece, each.name


def set_to(piece: type, name: str, value: float) -> object:
    (own,) = [each for each in dataclasses.fields(piece) if each.name == name]
    return piece(**{name: tuple([value] * len(own.default)) if isinstance(own.default, tuple) else value})


@pytest.mark.parametrize(("piece", "name"), [*numbers()])
def test_a_setting_is_a_finite_number(piece: type, name: str) -> None:
    (own,) = [each for each in dataclasses.fields(piece) if each.name == name]
    for value in (math.nan, math.inf, -math.inf):
        if math.isinf(value) and own.metadata.get("infinite"):
            set_to(piece, name, value)
        else:
            with pytest.raises(ValueError, match=rf"{name}\b"):
                set_to(piece, name, value)


def test_nested_numbers_are_checked_too() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Inner:
        rates: tuple[float, ...] = (1.0, math.nan)
        free: float = dataclasses.field(default=math.inf, metadata=INFINITE)

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Outer:
        inner: Inner = dataclasses.field(default_factory=Inner)

    with pytest.raises(ValueError, match=r"^Outer.inner.rates.1: got nan; need a finite number$"):
        check_finite(Outer())
    check_finite(Outer(inner=Inner(rates=())))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BoxScore(overlap=-0.25), "BoxScore.overlap: got -0.25; need at least 0"),
        (lambda: AnswerProbe(field="answer", deadline_s=0), "AnswerProbe.deadline_s: got 0; need more than 0 seconds"),
        (lambda: FactGain(deadline_s=-1), "FactGain.deadline_s: got -1; need more than 0 seconds"),
    ],
)
def test_numbers_below_their_bound_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
