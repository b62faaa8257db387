"""How different the sides of a pair must be."""

import pytest
from hypothesis import given, strategies

from bough.explore.text_similarity import edit_distance, rouge_l
from bough.export.pair_filter import ANY, PairFilter


def test_the_worked_examples() -> None:
    up, down = "push left then up", "push left then down"
    assert edit_distance(up, down) == edit_distance("push up", "push down") == 4
    assert rouge_l(up.split(), down.split()) == 0.75
    assert rouge_l(["push", "up"], ["push", "down"]) == 0.5
    assert PairFilter(edits=4)(up, down)
    assert not PairFilter(edits=5)(up, down)
    assert PairFilter(overlap=0.75)(up, down)
    assert not PairFilter(overlap=0.7)(up, down)
    assert PairFilter(overlap=0.7)("push up", "push down")


LETTERS = strategies.text("ab ", max_size=8)


@given(one=LETTERS, other=LETTERS, edits=strategies.integers(0, 9))
def test_what_is_quickly_known_is_true(one: str, other: str, edits: int) -> None:
    assert PairFilter(edits=edits)(one, other) == (edit_distance(one, other) >= edits)


def test_nothing_is_asked_unless_it_is_set() -> None:
    assert not ANY.filters
    assert ANY("a", "a")
    assert PairFilter(edits=1).filters
    assert PairFilter(overlap=0.9).filters
    for wrong in ({"edits": -1}, {"overlap": 1.5}):
        with pytest.raises(ValueError, match=rf"PairFilter.{next(iter(wrong))}: got"):
            PairFilter(**wrong)
