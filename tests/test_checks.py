"""Checks of fields: one of a few values."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from bough.checks import check_choices, listed


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Fields with and without a fixed set of values."""

    form: Literal["round", "square", "flat"] = "round"
    border: Literal["thin", "thick"] | None = None
    width: float | Literal["auto"] = "auto"


@pytest.mark.parametrize("fields", [{}, {"form": "flat", "border": "thin"}, {"width": 3.0}, {"width": "any"}])
def test_known_values_and_free_fields_pass(fields: dict[str, Any]) -> None:
    check_choices(Shape(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"form": "rund"}, "Shape.form: got 'rund'; need 'round', 'square' or 'flat'"),
        ({"form": None}, "Shape.form: got None; need 'round', 'square' or 'flat'"),
        ({"form": np.arange(2)}, "Shape.form: got array([0, 1]); need 'round', 'square' or 'flat'"),
        ({"border": "thn"}, "Shape.border: got 'thn'; need 'thin', 'thick' or None"),
    ],
)
def test_another_value_is_refused_with_the_known_ones(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check_choices(Shape(**fields))
    assert str(caught.value) == message


def test_one_value_is_listed_alone() -> None:
    assert listed(("a",)) == "'a'"
