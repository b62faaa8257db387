"""Texts packed into prefix trees, chunks of them, and the mask of each chunk."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.batch import PackedPrefixTree, shares
from bough.batch.attention import sees
from bough.batch.prefix_tree import ENOUGH_TOKENS

TEXTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=12)


def packed(texts: list[list[int]], *, merge: bool = True) -> PackedPrefixTree:
    """A token is predicted after every token of every text."""
    text = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    after = np.concatenate([1 + np.arange(len(each)) for each in texts])
    return PackedPrefixTree.pack([np.asarray(each) for each in texts], text, after, merge=merge)


def read(tree: PackedPrefixTree, place: int) -> list[int]:
    """The tokens that the one at `place` sees."""
    return [int(tree.tokens[k]) for k in range(place + 1) if place < tree.end[k]]


def test_worked_example() -> None:
    tree = packed([[7, 8, 1, 2, 9], [7, 8, 1, 2, 9, 4], [7, 8, 6]])
    assert tree.tokens.tolist() == [7, 8, 6, 1, 2, 9, 4]
    assert tree.position.tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert tree.end.tolist() == [7, 7, 3, 7, 7, 7, 7]
    assert tree.at.tolist() == [0, 1, 3, 4, 5, 0, 1, 3, 4, 5, 6, 0, 1, 2]
    assert tree.path_tokens == 14


@given(TEXTS, st.booleans())
def test_every_place_reads_its_text_and_nothing_else(texts: list[list[int]], merge: bool) -> None:
    tree = packed(texts, merge=merge)
    wanted = [text[: n + 1] for text in texts for n in range(len(text))]
    assert [read(tree, place) for place in tree.at.tolist()] == wanted
    assert tree.position[torch.as_tensor(tree.at)].tolist() == [len(text) - 1 for text in wanted]
    unique = {tuple(text) for text in wanted}
    assert len(tree) == (len(unique) if merge else len(wanted))


def test_a_cpu_chunk_takes_no_further_tree_once_it_is_large() -> None:
    size = ENOUGH_TOKENS // 2 + 100
    tree = packed([[first] + [0] * (size - 1) for first in range(5)])
    assert [len(each) for each in tree.chunks(10**6)] == [size, 2 * size, 2 * size]
    assert [len(each) for each in tree.chunks(2 * size - 1)] == [size] * 5
    # One tree is not cut as long as it fits.
    assert [len(each) for each in packed([[0] * 3 * ENOUGH_TOKENS]).chunks(10**6)] == [3 * ENOUGH_TOKENS]


@given(TEXTS, st.integers(1, 20))
def test_chunks_see_every_pair_once(texts: list[list[int]], most: int) -> None:
    tree = packed(texts)
    chunks = tree.chunks(most)
    assert [0, *(each.last for each in chunks)] == [*(each.first for each in chunks), len(tree)]
    for each in chunks:
        assert 0 < len(each) <= most
        inside = np.concatenate([each.past, np.arange(each.first, each.last)])
        queries = inside[len(each.past) :, None]
        wanted = (inside <= queries) & (queries < tree.end[inside])
        # The prefix holds every earlier token that the chunk sees.
        assert wanted.sum() == sum(int((tree.end[: q + 1] > q).sum()) for q in range(each.first, each.last))
        assert wanted.sum() == each.pairs
        assert np.array_equal(sees(each, None, torch.device("cpu")).numpy(), wanted)
        seen = np.zeros_like(wanted, dtype=np.int64)
        # Each key is in one run; among its own keys, a run's query sees those up to itself.
        for first, last, begin, end in each.runs.tolist():
            for query in range(first, last):
                seen[query, begin : min(end, query + len(each.past) + 1)] += 1
        assert np.array_equal(seen, wanted.astype(np.int64))


def test_a_packed_tree_is_cut_between_trees_where_it_can_be() -> None:
    tree = packed([[1, 1, 1, 1], [2, 2, 2], [3, 3, 3, 3, 3]])
    assert [len(each) for each in tree.chunks(8)] == [7, 5]
    assert [len(each.past) for each in tree.chunks(8)] == [0, 0]


def test_within_a_tree_it_is_cut_where_the_path_is_short() -> None:
    tree = packed([[0, 1, 1, 1], [0, 2, 2, 2, 2], [0, 3, 3, 3, 3, 3]])
    # Eleven tokens from the end is within the first branch; the second begins at 4 with one token before it.
    assert [each.first for each in tree.chunks(11)] == [0, 4]
    assert [len(each.past) for each in tree.chunks(11)] == [0, 1]


def test_what_is_left_for_a_short_chunk_is_the_beginning() -> None:
    spine = packed([[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    assert [len(each) for each in spine.chunks(4)] == [2, 4, 4]
    # Six tokens are read twice, and would be eight.
    assert len(spine.shared_tokens(spine.chunks(4))) == 6


def test_chunks_take_no_more_effort_than_the_longest_text() -> None:
    prompt = [0] * 8
    texts = [np.asarray([*prompt, *([branch] * 4)]) for branch in range(1, 9)]
    after = np.tile(np.arange(9, 13), len(texts))
    plain = PackedPrefixTree.pack(texts, np.repeat(np.arange(len(texts)), 4), after)
    assert [len(each) for each in plain.chunks(12)] == [4, 12, 12, 12]
    # A text of 12 tokens, 4 of them trained, takes as much as 8 + 4 * 3 others; 5 trained tokens would fit, too.
    heavy = replace(plain, effort=3.0)
    assert [len(each) for each in heavy.chunks(12)] == [10, 6, 6, 6, 6, 6]
    (alone,) = replace(PackedPrefixTree.pack(texts[:1], np.zeros(4, dtype=np.int64), after[:4]), effort=3.0).chunks(12)
    assert len(alone) == 12


def test_what_a_text_says_does_not_move_the_others() -> None:
    """So that rounding, which may depend on where a token lies, does not either."""
    one = packed([[0, 1, 1], [0, 2, 2, 2], [0, 3, 3], [0, 4, 4]])
    other = packed([[0, 1, 1], [0, 2, 2, 2], [0, 9, 9], [0, 4, 4]])
    assert one.end.tolist() == other.end.tolist()
    moved = (one.tokens != other.tokens).nonzero().flatten().tolist()
    assert [one.tokens[place].item() for place in moved] == [3, 3]


def test_a_cut_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens=0; need at least 1"):
        packed([[1]]).chunks(0)


@given(TEXTS, st.integers(1, 30))
def test_texts_apart_are_whole_in_their_chunks(texts: list[list[int]], most: int) -> None:
    tree = packed(texts)
    apart = tree.separate()
    assert apart.separate() is apart
    before = {int(number): read(tree, place) for number, place in zip(tree.prediction, tree.at, strict=True)}
    after = {int(number): read(apart, place) for number, place in zip(apart.prediction, apart.at, strict=True)}
    assert before == after
    assert len(tree) <= len(apart) <= tree.path_tokens
    for chunk in apart.chunks(most):
        assert apart.position[chunk.first] == 0
        assert not len(chunk.past)
        starts = int((apart.position[chunk.first : chunk.last] == 0).sum())
        longest = int(apart.position[chunk.first : chunk.last].max()) + 1
        assert starts == 1 or starts * longest <= most
    assert sum(map(len, apart.chunks(most))) == len(apart)


def test_a_share_of_texts_apart_has_whole_texts() -> None:
    tree = packed([[1, 2, 3], [1, 2, 4], [1, 5], [6]]).separate()
    assert tree.position.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2]
    parts = shares(tree, 2, lambda tokens, **_: tokens)
    assert sum(map(len, parts)) == len(tree), "no prefix is computed twice"
    assert all(each.by_path and each.position[0] == 0 for each in parts)
