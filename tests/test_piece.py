"""Pieces check the bounds that stand on their fields."""

import math
from dataclasses import FrozenInstanceError, InitVar, field
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pytest

from bough.cli.catalogue import fields_of, show_one
from bough.piece import Above, AtLeast, AtMost, Between, NotEmpty, Regex, SomeOf, piece
from bough.schedule import LinearSchedule, ValueSchedule

if TYPE_CHECKING:
    from pathlib import Path


@piece
class Rule:
    epsilon: Annotated[float, Above(0)] = 1e-6
    count: Annotated[int, AtLeast(1)] = 1
    loss: Annotated[float, AtMost(0, "0 or less")] = 0.0
    share: Annotated[float | None, Between(0, 1, below=True)] = None
    how: Literal["mean", "sum"] = "mean"
    free: float = 0.0
    both: Annotated[float, Above(0), AtMost(2)] = 1.0
    apart: Annotated[float, AtLeast(0)] | None = None
    later: "Annotated[float, AtLeast(0)]" = 0.0
    names: Annotated[tuple[str, ...], NotEmpty("names, each once", different=True)] = ("a",)
    parts: Annotated[tuple[str, ...], SomeOf(("x", "y"))] = ("x",)
    pattern: Annotated[str, Regex()] = ""
    few: tuple[int, ...] = ()
    unknown: "Path | None" = None

    def __post_init__(self) -> None:
        if self.free < self.loss:
            raise ValueError("Rule.free: less than the loss")


@piece
class LongerRule(Rule):
    count: int = 2
    more: int = 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0.0}, r"Rule.epsilon: got 0.0; need a number above 0$"),
        ({"epsilon": math.nan}, r"Rule.epsilon: got nan; need a number above 0$"),
        ({"epsilon": math.inf}, r"Rule.epsilon: got inf; need a finite number$"),
        ({"count": 0}, r"Rule.count: got 0; need at least 1$"),
        ({"loss": 0.1}, r"Rule.loss: got 0.1; need 0 or less$"),
        ({"epsilon": None}, r"Rule.epsilon: got None; need a number$"),
        ({"epsilon": "3"}, r"Rule.epsilon: got '3'; need a number$"),
        ({"epsilon": np.array([1.0, 2.0])}, r"Rule.epsilon: got array\(\[1., 2.\]\); need a number$"),
        ({"epsilon": np.float32("nan")}, r"Rule.epsilon: got .*nan\)?; need a number$"),
        ({"count": True}, r"Rule.count: got True; need an integer$"),
        ({"both": 3.0}, r"Rule.both: got 3.0; need at most 2$"),
        ({"apart": -1.0}, r"Rule.apart: got -1.0; need at least 0, or None$"),
        ({"later": -1.0}, r"Rule.later: got -1.0; need at least 0$"),
        ({"share": 1}, r"Rule.share: got 1; need a number from 0 to below 1, or None$"),
        ({"names": ()}, r"Rule.names: got \(\); need names, each once$"),
        ({"names": ("a", "a")}, r"Rule.names: got \('a', 'a'\); need names, each once$"),
        ({"parts": ("z",)}, r"Rule.parts: got \('z',\); need some of x, y$"),
        ({"parts": ()}, r"Rule.parts: got \(\); need some of x, y$"),
        ({"pattern": "("}, r"Rule.pattern: got '\(' \(.*\); need a regular expression$"),
        ({"count": 1.5}, r"Rule.count: got 1.5; need an integer$"),
        ({"few": [1]}, r"Rule.few: got \[1\]; need a tuple, each item an integer$"),
        ({"how": "most"}, r"Rule.how: got 'most'; need 'mean' or 'sum'$"),
        ({"free": -1.0}, r"Rule.free: less than the loss$"),
        ({"free": math.inf}, r"Rule.free: got inf; need a finite number$"),
    ],
)
def test_a_field_out_of_its_bounds_is_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rule(**wrong)  # type: ignore[arg-type]


@piece
class Harsher(Rule):
    weight: float = 1.0


@piece
class Halved:
    both: float
    half: Annotated[float, AtMost(1)] = field(init=False, default=0.0)
    share: InitVar[float] = 0.5

    def __post_init__(self, share: float) -> None:
        if self.both * share > 1:
            raise ValueError(f"Halved.both: got {self.both}")


def test_a_piece_has_fields_of_its_init_alone() -> None:
    assert Halved(both=2.0).half == 0
    with pytest.raises(ValueError, match=r"Halved.both: got 2"):
        Halved(both=2.0, share=1.0)


def test_a_tuple_without_items_and_a_number_for_a_schedule_are_checked() -> None:
    @piece
    class Plan:
        none: tuple[()] = ()
        turns: int | ValueSchedule = 1

    with pytest.raises(ValueError, match=r"Plan.none: got \(1,\); need a tuple of 0 items$"):
        Plan(none=(1,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Plan.turns: got 2.5; need an integer or a ValueSchedule$"):
        Plan(turns=2.5)  # type: ignore[arg-type]
    assert Plan(turns=LinearSchedule(start=1, end=3)).none == ()


def test_a_piece_inherits_the_relations_of_its_fields() -> None:
    with pytest.raises(ValueError, match=r"Rule.free: less than the loss"):
        Harsher(free=-1.0, weight=2.0)


def test_a_piece_takes_numpy_numbers_and_big_ints() -> None:
    rule = Rule(epsilon=np.float32(0.5), count=np.int64(3), both=1, apart=-0.0)  # type: ignore[arg-type]
    assert (rule.epsilon, rule.count, Rule(count=10**400).apart) == (0.5, 3, None)


@piece
class Stricter(Rule):
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.free > self.title:
            raise ValueError("Stricter.free: above the title")

    @property
    def title(self) -> float:
        return super().count


def test_a_piece_calls_the_methods_of_its_base() -> None:
    assert Stricter(free=1.0).title == 1
    for free, message in ((-1.0, "Rule.free: less than the loss"), (2.0, "Stricter.free: above the title")):
        with pytest.raises(ValueError, match=message):
            Stricter(free=free)


def test_the_list_of_pieces_shows_bounds() -> None:
    assert "    epsilon: float, a number above 0 = 1e-06" in show_one("Capo")


def test_the_list_of_pieces_shows_the_bounds_of_a_base_and_plain_unions() -> None:
    shown = fields_of(LongerRule)
    assert "count: int, at least 1 = 2" in shown
    assert "share: float | None, a number from 0 to below 1 = None" in shown
    assert "apart: float | None, at least 0 = None" in shown
    assert "both: float, a number above 0, at most 2 = 1.0" in shown


def test_a_piece_is_a_frozen_dataclass() -> None:
    rule = Rule(share=0, count=3)
    assert rule == Rule(count=3, share=0)
    with pytest.raises(FrozenInstanceError):
        rule.count = 2  # type: ignore[misc]


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"count": 0}, {"free": -1.0}, {"how": "most"}])
def test_a_piece_that_inherits_another_keeps_its_checks(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"LongerRule.{next(iter(wrong))}|Rule.free"):
        LongerRule(**wrong)  # type: ignore[arg-type]
