from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from jaxtyping import Float, Int, TypeCheckError
from tests.shapes import EVERY, FIRST, checked
from torch import Tensor

from bough.batch.logprob import chosen_logprobs
from bough.objective import LossInputs


@checked
def _outer(left: Float[Tensor, " n"], right: Float[Tensor, " m"] | None = None, *, rows: int = 0) -> Any:
    return torch.zeros(rows or len(left), 2) if right is None else torch.outer(left, right)


@checked
def _ends(spans: Sequence[Int[Tensor, " k"]]) -> Int[Tensor, " k"]:
    return torch.zeros(len(spans[0]) if len(spans) == 1 else 7, dtype=torch.long)


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    left: Float[Tensor, " n"]
    right: Float[Tensor, " n"] | None = None


@checked
def _plain(number: int) -> int:
    return number


def test_what_fits_goes_through() -> None:
    two, three = torch.zeros(2), torch.zeros(3)
    assert _outer(two, right=three).shape == (2, 3)
    assert _outer(two).shape == (2, 2)
    assert len(_ends([torch.zeros(3, dtype=torch.long)])) == 3
    assert _Pair(left=two, right=two).right is two


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: _outer(torch.zeros(2, 2)), r"_outer: left: got torch.float32 of shape \(2, 2\)"),
        (lambda: _outer(torch.zeros(2), torch.zeros(2, dtype=torch.long)), "_outer: right: got torch.int64"),
        (lambda: _outer(torch.zeros(2), right="two"), "_outer: right: got str"),
        (lambda: _ends([torch.zeros(2)]), "_ends: spans: got list"),
        (lambda: _ends([torch.zeros(2, dtype=torch.long)] * 2), r"_ends: the result: got torch.int64 of shape \(7,\)"),
        (lambda: _Pair(left=torch.zeros(2), right=torch.zeros(3)), "_Pair.__init__: right: got"),
    ],
)
def test_another_shape_or_type_is_refused(call: Callable[[], object], names: str) -> None:
    with pytest.raises(TypeCheckError, match=names):
        call()


def test_a_function_without_shapes_is_left_as_it_is() -> None:
    assert _plain.__code__.co_name == "_plain"


def test_modules_of_bough_are_checked() -> None:
    assert chosen_logprobs.__code__.co_name == "checking"
    assert LossInputs.__init__.__code__.co_name == "checking"


def test_later_calls_are_checked_now_and_then() -> None:
    for _ in range(FIRST):
        _outer(torch.zeros(2))
    refused = 0
    for _ in range(2 * EVERY):
        try:
            _outer(torch.zeros(2, 2))
        except TypeCheckError:
            refused += 1
    assert refused == 2
