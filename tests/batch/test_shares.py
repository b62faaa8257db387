"""The division of a packed prefix tree among workers: whole, balanced, and nearly the best there is."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import credited, random_tree, seeds

from bough.batch import PackedPrefixTree, divide, pack, shares
from bough.tree import Ints


def operations(*, tokens: Ints, trained: Ints, pairs: Ints) -> Ints:
    return 100 * tokens + 30 * trained + pairs


def texts(lengths: Sequence[int], shared: int) -> PackedPrefixTree:
    """Texts that begin with the same tokens."""
    rng = np.random.default_rng(0)
    lines = [
        np.concatenate([np.full(shared, 7), [100 + i], rng.integers(200, 900, each - 1)])
        for i, each in enumerate(lengths)
    ]
    return PackedPrefixTree.pack(lines, text=np.arange(len(lines)), after=np.asarray([len(each) for each in lines]))


def path(packed: PackedPrefixTree, at: int) -> list[int]:
    """The tokens up to one."""
    seen = np.flatnonzero((np.arange(len(packed)) <= at) & (packed.end > at))
    return packed.tokens[seen].tolist()


@given(seeds(), st.integers(1, 5))
def test_each_prediction_has_one_share_and_its_whole_prefix(rng: np.random.Generator, count: int) -> None:
    whole = pack([credited(random_tree(rng, task=str(i)), rng) for i in range(3)]).prefix_tree()
    found = shares(whole, count, operations)
    assert len(found) == count
    assert sorted(np.concatenate([each.prediction for each in found])) == list(range(len(whole.at)))
    for each in found:
        for at, there in zip(each.at.tolist(), whole.at[each.prediction].tolist(), strict=True):
            assert path(each, at) == path(whole, there)
            assert each.position[at] == whole.position[there]


@pytest.mark.parametrize("shared", [0, 1, 40])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_shares_are_even_whatever_the_texts_have_in_common(shared: int, count: int) -> None:
    tokens = [len(each) for each in shares(texts([60] * 24, shared), count, operations)]
    assert min(tokens) > 0.8 * sum(tokens) / count
    # Each share computes the common beginning once.
    assert sum(tokens) == 24 * 60 + shared * count


def test_the_last_share_is_not_what_the_others_leave() -> None:
    assert sorted(len(each) for each in shares(texts([60] * 10, 5), 4, operations)) == [125, 125, 185, 185]


@pytest.mark.parametrize("shared", [0, 5])
def test_long_texts_side_by_side_go_to_different_workers(shared: int) -> None:
    whole = texts([20, 60, 60, 60, 20, 20], shared)
    found = shares(whole, 3, operations)
    assert [len(each) for each in found] == [80 + shared] * 3
    for each in found:
        assert [path(each, at) for at in each.at.tolist()] == [
            path(whole, at) for at in whole.at[each.prediction].tolist()
        ]


def test_one_long_text_is_not_divided() -> None:
    assert [len(each) for each in shares(texts([60], 5), 3, operations)] == [65, 0, 0]


def test_a_cut_where_the_path_is_short_is_worth_some_balance() -> None:
    before, path_cost = np.asarray([0, 40, 50, 100]), np.asarray([0, 5, 45, 0])
    assert divide(before, path_cost, 2) == [0, 1, 3]  # 40 and 60 + 5, not 50 and 50 + 45


@given(seeds(), st.integers(1, 4), st.integers(1, 9))
def test_no_division_is_much_better(rng: np.random.Generator, count: int, cuts: int) -> None:
    before = np.append(0, rng.integers(1, 10_000, cuts).cumsum())
    path_cost = np.append(rng.integers(0, 5_000, cuts), 0)
    path_cost[0] = 0

    def largest(bounds: tuple[int, ...]) -> int:
        return max(
            before[end] - before[begin] + (path_cost[begin] if end > begin else 0) for begin, end in pairwise(bounds)
        )

    found = tuple(divide(before, path_cost, count))
    assert (len(found), found[0], found[-1]) == (count + 1, 0, cuts)
    inner = range(1, cuts)
    best = min(
        largest((0, *some, *[cuts] * (count - len(some))))
        for number in range(min(count, cuts))
        for some in combinations(inner, number)
    )
    assert best <= largest(found) <= best + before[-1] / (1000 * count) + 1


def test_counts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="shares: got count=0; need at least 1"):
        shares(texts([60], 0), 0, operations)
