"""Pieces check the bounds that stand on their fields."""

import math
from dataclasses import FrozenInstanceError
from typing import Annotated, Literal

import pytest

from bough.cli.catalogue import show_one
from bough.piece import Above, AtLeast, AtMost, Between, piece


@piece
class Rule:
    epsilon: Annotated[float, Above(0)] = 1e-6
    count: Annotated[int, AtLeast(1)] = 1
    loss: Annotated[float, AtMost(0, "0 or less")] = 0.0
    share: Annotated[float | None, Between(0, 1, below=True)] = None
    how: Literal["mean", "sum"] = "mean"
    free: float = 0.0

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
        ({"share": 1}, r"Rule.share: got 1; need a number from 0 to below 1$"),
        ({"how": "most"}, r"Rule.how: got 'most'; need 'mean' or 'sum'$"),
        ({"free": -1.0}, r"Rule.free: less than the loss$"),
        ({"free": math.inf}, r"Rule.free: got inf; need a finite number$"),
    ],
)
def test_a_field_out_of_its_bounds_is_named(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rule(**wrong)  # type: ignore[arg-type]


def test_the_list_of_pieces_shows_bounds() -> None:
    assert "    epsilon: float, a number above 0 = 1e-06" in show_one("Capo")


def test_a_piece_is_a_frozen_dataclass() -> None:
    rule = Rule(share=0, count=3)
    assert rule == Rule(count=3, share=0)
    with pytest.raises(FrozenInstanceError):
        rule.count = 2  # type: ignore[misc]


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"count": 0}, {"free": -1.0}, {"how": "most"}])
def test_a_piece_that_inherits_another_keeps_its_checks(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"LongerRule.{next(iter(wrong))}|Rule.free"):
        LongerRule(**wrong)  # type: ignore[arg-type]
