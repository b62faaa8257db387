"""Texts laid out depth first, stretches of them, and what each token sees there."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.batch import Forest, plant
from bough.batch.attention import sees
from bough.batch.flex import BLOCK, block_mask
from bough.batch.forest import ENOUGH_TOKENS
from bough.batch.glances import glances
from bough.batch.stretch import Stretch

TEXTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=12)


def planted(texts: list[list[int]], *, merge: bool = True) -> Forest:
    """Something is predicted after every token of every text."""
    text = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    after = np.concatenate([1 + np.arange(len(each)) for each in texts])
    return plant([np.asarray(each) for each in texts], text, after, merge=merge)


def read(forest: Forest, place: int) -> list[int]:
    """The tokens that the one at `place` sees."""
    return [int(forest.tokens[k]) for k in range(place + 1) if place < forest.end[k]]


def test_worked_example() -> None:
    forest = planted([[7, 8, 1, 2, 9], [7, 8, 1, 2, 9, 4], [7, 8, 6]])
    assert forest.tokens.tolist() == [7, 8, 6, 1, 2, 9, 4]
    assert forest.position.tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert forest.end.tolist() == [7, 7, 3, 7, 7, 7, 7]
    assert forest.at.tolist() == [0, 1, 3, 4, 5, 0, 1, 3, 4, 5, 6, 0, 1, 2]
    assert forest.path_tokens == 14


@given(TEXTS, st.booleans())
def test_every_place_reads_its_text_and_nothing_else(texts: list[list[int]], merge: bool) -> None:
    forest = planted(texts, merge=merge)
    wanted = [text[: n + 1] for text in texts for n in range(len(text))]
    assert [read(forest, place) for place in forest.at.tolist()] == wanted
    assert forest.position[torch.as_tensor(forest.at)].tolist() == [len(text) - 1 for text in wanted]
    unique = {tuple(text) for text in wanted}
    assert len(forest) == (len(unique) if merge else len(wanted))


def test_a_stretch_is_no_longer_than_a_cache_wants_it() -> None:
    size = ENOUGH_TOKENS // 2 + 100
    forest = planted([[first] + [0] * (size - 1) for first in range(5)])
    assert [len(each) for each in forest.stretches(10**6)] == [size, 2 * size, 2 * size]
    assert [len(each) for each in forest.stretches(2 * size - 1)] == [size] * 5
    # One tree is not cut as long as it fits.
    assert [len(each) for each in planted([[0] * 3 * ENOUGH_TOKENS]).stretches(10**6)] == [3 * ENOUGH_TOKENS]


@given(TEXTS, st.integers(1, 20))
def test_stretches_see_every_pair_once(texts: list[list[int]], most: int) -> None:
    forest = planted(texts)
    stretches = forest.stretches(most)
    assert [0, *(each.last for each in stretches)] == [*(each.first for each in stretches), len(forest)]
    for each in stretches:
        assert 0 < len(each) <= most
        inside = np.concatenate([each.past, np.arange(each.first, each.last)])
        queries = inside[len(each.past) :, None]
        wanted = (inside <= queries) & (queries < forest.end[inside])
        # Nothing is missing: the past is all that is seen from here.
        assert wanted.sum() == sum(int((forest.end[: q + 1] > q).sum()) for q in range(each.first, each.last))
        assert wanted.sum() == each.pairs
        assert np.array_equal(sees(each, None, torch.device("cpu")).numpy(), wanted)
        seen = np.zeros_like(wanted, dtype=np.int64)
        parts = np.zeros(len(each), dtype=np.int64)
        assert [glance.column for glance in glances(each)] == sorted(glance.column for glance in glances(each))
        for glance in glances(each):
            (q0, q1), (k0, k1) = glance.queries, glance.keys
            for q in np.split(np.arange(q0, q1), glance.rows):
                keys = np.split(np.arange(k0, k1), glance.rows)[(int(q[0]) - q0) * glance.rows // (q1 - q0)]
                # Of each column one part at most, and all have the first.
                assert (parts[q] <= glance.column).all()
                assert glance.column == 0 or (parts[q] > 0).all()
                parts[q] = glance.column + 1
                for row, query in enumerate(q.tolist()):
                    seen[query, keys[: row + 1] if glance.causal else keys] += 1
        assert parts.all()
        assert np.array_equal(seen, wanted.astype(np.int64))


def test_a_forest_is_cut_between_trees_where_it_can_be() -> None:
    forest = planted([[1, 1, 1, 1], [2, 2, 2], [3, 3, 3, 3, 3]])
    assert [len(each) for each in forest.stretches(8)] == [7, 5]
    assert [len(each.past) for each in forest.stretches(8)] == [0, 0]


def test_within_a_tree_it_is_cut_where_the_path_is_short() -> None:
    forest = planted([[0, 1, 1, 1], [0, 2, 2, 2, 2], [0, 3, 3, 3, 3, 3]])
    # Eleven tokens from the end is within the first branch; the second begins at 4 with one token before it.
    assert [each.first for each in forest.stretches(11)] == [0, 4]
    assert [len(each.past) for each in forest.stretches(11)] == [0, 1]


def test_what_is_left_for_a_short_stretch_is_the_beginning() -> None:
    spine = planted([[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    assert [len(each) for each in spine.stretches(4)] == [2, 4, 4]
    # Six tokens are read twice, and would be eight.
    assert len(spine.origin(spine.stretches(4))) == 6


def test_stretches_take_no_more_effort_than_the_longest_text() -> None:
    prompt = [0] * 8
    texts = [np.asarray([*prompt, *([branch] * 4)]) for branch in range(1, 9)]
    after = np.tile(np.arange(9, 13), len(texts))
    plain = plant(texts, np.repeat(np.arange(len(texts)), 4), after)
    assert [len(each) for each in plain.stretches(12)] == [4, 12, 12, 12]
    # A text of 12 tokens, 4 of them trained, takes as much as 8 + 4 * 3 others; 5 trained tokens would fit, too.
    heavy = replace(plain, effort=3.0)
    assert [len(each) for each in heavy.stretches(12)] == [10, 6, 6, 6, 6, 6]
    (alone,) = replace(plant(texts[:1], np.zeros(4, dtype=np.int64), after[:4]), effort=3.0).stretches(12)
    assert len(alone) == 12


def test_texts_of_one_length_lie_side_by_side_and_are_one_glance() -> None:
    (whole,) = planted([[0, 1, 1], [0, 2, 2, 2], [0, 3, 3], [0, 4, 4]]).stretches(100)
    assert [(each.queries, each.rows) for each in glances(whole)] == [((0, 10), 1), ((1, 7), 3), ((7, 10), 1)]


def test_what_a_text_says_does_not_move_the_others() -> None:
    """So that rounding, which may depend on where a token lies, does not either."""
    one = planted([[0, 1, 1], [0, 2, 2, 2], [0, 3, 3], [0, 4, 4]])
    other = planted([[0, 1, 1], [0, 2, 2, 2], [0, 9, 9], [0, 4, 4]])
    assert one.end.tolist() == other.end.tolist()
    moved = (one.tokens != other.tokens).nonzero().flatten().tolist()
    assert [one.tokens[place].item() for place in moved] == [3, 3]


def test_a_cut_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens=0; need at least 1"):
        planted([[1]]).stretches(0)


def long_stretches(seed: int) -> list[Stretch]:
    rng = np.random.default_rng(seed)
    texts = [
        [0, *rng.integers(2, size=rng.integers(1, 5)), *rng.integers(9, size=rng.integers(1, 150))] for _ in "ab" * 6
    ]
    return planted([list(map(int, text)) for text in texts]).stretches(700)


@pytest.mark.parametrize("seed", range(4))
def test_block_mask_is_the_one_found_by_trying_every_pair(seed: int) -> None:
    for stretch in long_stretches(seed):
        mask = block_mask(stretch, None, torch.device("cpu"))
        dense = sees(stretch, None, torch.device("cpu")).numpy()
        n, m = dense.shape
        rows, columns = -(-n // BLOCK), -(-m // BLOCK)
        blocks = {
            (i, j): dense[i * BLOCK : (i + 1) * BLOCK, j * BLOCK : (j + 1) * BLOCK]
            for i in range(rows)
            for j in range(columns)
        }
        partly = {place for place, block in blocks.items() if block.any() and not block.all()}
        wholly = {place for place, block in blocks.items() if block.all()}
        assert listed(mask.kv_num_blocks, mask.kv_indices) == partly
        assert listed(mask.full_kv_num_blocks, mask.full_kv_indices) == wholly
        q, k = torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
        assert np.array_equal(mask.mask_mod(torch.tensor(0), torch.tensor(0), q, k).numpy(), dense)


def listed(count: torch.Tensor | None, which: torch.Tensor | None) -> set[tuple[int, int]]:
    assert count is not None
    assert which is not None
    return {(row, int(j)) for row, n in enumerate(count[0, 0].tolist()) for j in which[0, 0, row, :n]}
