import pytest
from hypothesis import given, strategies

from bough.explore.text_similarity import edit_distance, edit_ratio, rouge_l, suffix_match

tokens = strategies.lists(strategies.integers(0, 3), max_size=8)


def test_the_card() -> None:
    one, other = [1, 2, 3, 4, 5], [9, 2, 3, 4, 5]
    assert suffix_match(one, other) == pytest.approx(0.8, abs=2e-5)
    assert rouge_l(one, other) == pytest.approx(0.8, abs=2e-5)
    assert edit_ratio(one, other) == pytest.approx(0.2, abs=2e-5)


def test_endings_are_found_anywhere_in_the_other() -> None:
    assert suffix_match([9, 9, 1, 2], [1, 2, 7, 7]) == 0.5
    assert suffix_match([1, 2, 7, 7], [9, 9, 1, 2]) == 0.5
    assert suffix_match([1, 2, 3], [4, 5, 6]) == 0


@given(one=tokens, other=tokens)
def test_measures(one: list[int], other: list[int]) -> None:
    for measure in (edit_ratio, suffix_match, rouge_l):
        assert 0 <= measure(one, other) <= 1
        assert measure(one, other) == measure(other, one)
    assert edit_ratio(one, one) == edit_distance(one, one) == 0
    if one:
        assert suffix_match(one, one) == rouge_l(one, one) == 1
    brute = max((n for n in range(len(one) + 1) if _inside(one[len(one) - n :], other)), default=0)
    assert suffix_match(one, other) * max(len(one), len(other), 1) >= brute
    assert edit_ratio(one, other) * max(len(one), len(other), 1) == pytest.approx(_distance(tuple(one), tuple(other)))


def _inside(part: list[int], whole: list[int]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return _distance(one[1:], other[1:])
    return 1 + min(_distance(one[1:], other), _distance(one, other[1:]), _distance(one[1:], other[1:]))
