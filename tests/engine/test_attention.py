import random
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toys import Toy

from bough.engine.attention import Attention
from bough.engine.blocks import BlockAttention, attend, written_out
from bough.engine.cache import Cache
from bough.engine.native import NativeAttention, kernel_for
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.plan import Block, Even, Scattered, plan
from bough.engine.slots import Ints
from bough.engine.stretches import stretches

HEADS, KV_HEADS, WIDTH = 6, 2, 8
SCALE = 0.6


class Readers:
    """Slots that read random tokens, beside all keys and values of each, kept apart."""

    def __init__(
        self,
        seed: int = 0,
        rows: int = 6,
        most_pages: int = 400,
        dtype: torch.dtype = torch.float64,
        *,
        native: bool = False,
    ) -> None:
        model = Toy(dtype=dtype, heads=HEADS, kv_heads=KV_HEADS)
        kernel = kernel_for(model) if native else None
        if native and kernel is None:
            pytest.skip("there is no C++ compiler")
        self.attends = BlockAttention if kernel is None else partial(NativeAttention, kernel)
        self.cache, self.pages, self.dtype = Cache(model), Pages(rows=rows, most_pages=most_pages), dtype
        self.random = torch.Generator().manual_seed(seed)
        self.keys = [self._noise(KV_HEADS, 0) for _ in range(rows)]
        self.values = list(self.keys)
        self.attention: Attention | None = None
        self.went_on = False

    def _noise(self, heads: int, tokens: int) -> Tensor:
        return torch.randn(heads, tokens, WIDTH, generator=self.random, dtype=torch.float64).to(self.dtype)

    def length(self, slot: int) -> int:
        return self.keys[slot].shape[1]

    def cut(self, slot: int, tokens: int) -> None:
        self.pages.cut(slot, tokens, self.length(slot))
        self.keys[slot], self.values[slot] = self.keys[slot][:, :tokens], self.values[slot][:, :tokens]

    def fork(self, source: int, slot: int, tokens: int) -> None:
        """Let another slot go on after so many tokens of one."""
        if slot == source:
            self.cut(slot, tokens)
        else:
            self.cut(slot, 0)
            self.pages.share(slot, source, tokens)
            self.keys[slot], self.values[slot] = self.keys[source][:, :tokens], self.values[source][:, :tokens]

    def extend(self, slot: int, end: int) -> None:
        source, target = self.pages.extend(slot, end)
        self.cache.reserve(len(self.pages.readers) * PAGE_TOKENS)
        self.cache.move(torch.as_tensor(source), torch.as_tensor(target))

    def read(self, count: dict[int, int], window: int | None = None, *, goes_on: bool = False) -> tuple[Tensor, Tensor]:
        """One pass: what `Attention` says, and what each slot computes alone. It goes on from the last if it can."""
        slots = np.array(list(count), dtype=np.int64)
        many = np.array(list(count.values()), dtype=np.int64)
        first = np.array([self.length(slot) for slot in count], dtype=np.int64)
        for slot, end in zip(slots.tolist(), (first + many).tolist(), strict=True):
            self.extend(slot, end)
        total = int(many.sum())
        query, key, value = self._noise(HEADS, total), self._noise(KV_HEADS, total), self._noise(KV_HEADS, total)
        self.went_on = goes_on and self.attention is not None and self.attention.advance()
        if not self.went_on:
            self.attention = self.attends(self.cache, self.pages, slots, first, many)
        assert self.attention
        got = self.attention(0, query, key, value, SCALE, window=window)
        wanted: list[Tensor] = []
        for slot, begin, tokens in zip(slots.tolist(), (np.cumsum(many) - many).tolist(), many.tolist(), strict=True):
            new = slice(begin, begin + tokens)
            self.keys[slot] = torch.cat([self.keys[slot], key[:, new]], dim=1)
            self.values[slot] = torch.cat([self.values[slot], value[:, new]], dim=1)
            wanted.append(alone(query[:, new], self.keys[slot], self.values[slot], window))
        return got, torch.cat(wanted, dim=1)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("window", [None, 9])
def test_attention_of_what_was_read_last_alone(window: int | None, native: bool) -> None:
    readers = Readers(native=native)
    _check(readers, {0: 70, 1: 5})
    readers.fork(0, 2, 66)
    for slot, end in ((0, 375), (1, 6), (2, 70)):
        readers.extend(slot, end)
    slots, count = np.arange(3), np.asarray([305, 1, 4])
    first = np.asarray([readers.length(slot) for slot in range(3)])
    query, key, value = (readers._noise(heads, 310) for heads in (HEADS, KV_HEADS, KV_HEADS))
    whole = readers.attends(readers.cache, readers.pages, slots, first, count)
    every = whole(0, query, key, value, SCALE, window=window)
    rows = np.asarray([304, 309])
    few, attend_last = whole.last(slots[[0, 2]], (first + count - 1)[[0, 2]], rows)
    found = attend_last(0, query, key, value, SCALE, window=window)
    torch.testing.assert_close(found, every[:, rows], atol=1e-12, rtol=1e-12)
    # Masks of torch's operations know nothing of a window that moves.
    assert few.advance() == (native or window is None)


def alone(query: Tensor, key: Tensor, value: Tensor, window: int | None) -> Tensor:
    """Masked attention of the last tokens of one text, written out."""
    key, value = (x.repeat_interleave(len(query) // len(x), dim=0) for x in (key, value))
    at = torch.arange(key.shape[1])
    mine = at[-query.shape[1] :, None]
    hidden = at > mine
    if window is not None:
        hidden |= at <= mine - window
    score = (query @ key.transpose(-1, -2) * SCALE).masked_fill(hidden, -torch.inf)
    return score.softmax(-1) @ value


def _blocks(readers: Readers, slots: Ints, read: int) -> tuple[Block, ...]:
    """Of a pass in which slots that have read so many tokens read one more."""
    count = np.ones_like(slots)
    return plan(stretches(readers.pages, slots, read * count, count), len(readers.pages.readers)).blocks


def _check(readers: Readers, count: dict[int, int], window: int | None = None, tolerance: float = 1e-12) -> None:
    got, wanted = readers.read(count, window)
    torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("native", [False, True])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_slots_that_only_go_on_are_planned_once_for_many_passes(seed: int, native: bool) -> None:
    draw = random.Random(seed)
    readers = Readers(seed, native=native)
    _check(readers, {0: draw.randint(1, 150)})
    for slot in range(1, 6):
        source = draw.randrange(slot)
        readers.fork(source, slot, draw.randint(1, readers.length(source)))
        _check(readers, {slot: draw.randint(1, 20), 0: draw.randint(1, 3)})
    some = draw.sample(range(6), draw.randint(1, 6))
    went_on = 0
    for number in range(40):
        got, wanted = readers.read(dict.fromkeys(some, 1), goes_on=number > 0)
        torch.testing.assert_close(got, wanted, atol=1e-12, rtol=1e-12)
        went_on += readers.went_on
    # Each of six begins a page once in 64 passes, and the keys that are read are rounded up to 16.
    assert went_on >= 40 - 1 - len(some) * (1 + 3)


@pytest.mark.parametrize("native", [False, True])
def test_only_machine_code_goes_on_with_a_window(native: bool) -> None:
    readers = Readers(native=native)
    _check(readers, {0: 10, 1: 5})
    for number in range(4):
        got, wanted = readers.read({0: 1, 1: 1}, window=3, goes_on=number > 0)
        torch.testing.assert_close(got, wanted, atol=1e-12, rtol=1e-12)
        assert readers.went_on == (native and number > 0)


@pytest.mark.parametrize("native", [False, True])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), window=st.sampled_from([None, 1, 5, 63, 64, 65, 150]))
def test_any_tree_of_forks_attends_as_each_of_its_texts_alone(seed: int, window: int | None, native: bool) -> None:
    draw = random.Random(seed)
    readers = Readers(seed, native=native)
    for _ in range(12):
        for _ in range(draw.randint(0, 3)):
            source = draw.randrange(6)
            if length := readers.length(source):
                # At the first and the last token, at the edges of pages, anywhere.
                tokens = draw.choice([1, length, min(64, length), min(65, length), draw.randint(1, length)])
                readers.fork(source, draw.randrange(6), tokens)
        some = draw.sample(range(6), draw.randint(1, 6))
        _check(readers, {slot: draw.choice([1, 1, 1, 2, 7, 40, 130]) for slot in some}, window)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("window", [None, 3, 70])
def test_forks_of_forks_while_their_parents_go_on(window: int | None, native: bool) -> None:
    readers = Readers(native=native)
    _check(readers, {0: 150}, window)
    readers.fork(0, 1, 150)
    readers.fork(0, 2, 100)
    _check(readers, {0: 5, 1: 1, 2: 60}, window)
    readers.fork(2, 3, 130)
    readers.fork(2, 4, 1)
    for _ in range(70):
        _check(readers, {0: 1, 1: 1, 2: 1, 3: 1, 4: 1}, window)


@pytest.mark.parametrize("native", [False, True])
def test_what_others_read_outlives_the_slot_that_read_it(native: bool) -> None:
    readers = Readers(native=native)
    _check(readers, {0: 150})
    readers.fork(0, 1, 140)
    readers.cut(0, 0)
    _check(readers, {0: 300, 1: 3})
    readers.fork(1, 2, 141)
    readers.cut(1, 0)
    _check(readers, {1: 100, 2: 3})


@pytest.mark.parametrize("native", [False, True])
def test_a_slot_that_goes_back_does_not_overwrite_what_others_read(native: bool) -> None:
    readers = Readers(native=native)
    _check(readers, {0: 100})
    readers.fork(0, 1, 90)
    readers.cut(0, 70)
    _check(readers, {0: 30, 1: 1})
    _check(readers, {0: 1, 1: 1})


@pytest.mark.parametrize("native", [False, True])
def test_scattered_pages_are_read_too(native: bool) -> None:
    readers = Readers(rows=8, native=native)
    for _ in range(3):
        for slot in range(8):
            _check(readers, {slot: 63})
    some = np.array([3, 0, 6])
    assert any(isinstance(block.place, Scattered) for block in _blocks(readers, some, 188))
    _check(readers, dict.fromkeys(some.tolist(), 1))
    _check(readers, dict.fromkeys(some.tolist(), 2))


def test_a_small_gap_is_read_for_nothing() -> None:
    readers = Readers(rows=12)
    for slot in range(12):
        _check(readers, {slot: 100})
    some = np.array([0, 2, 3, 4, 6, 7, 8, 9, 10])
    (block,) = _blocks(readers, some, 99)
    assert block.place == Even(first=0, step=2)
    assert block.token[block.real].tolist() == list(range(9))
    assert np.flatnonzero(~block.real[:, 0]).tolist() == [1, 5]
    for taken in (some.tolist(), (5, 0), (1, 3)):
        _check(readers, dict.fromkeys(taken, 1))


def test_a_large_gap_is_left_out() -> None:
    readers = Readers(rows=24)
    for slot in range(24):
        _check(readers, {slot: 200})
    some = np.array([*range(9), *range(15, 24)])
    blocks = _blocks(readers, some, 199)
    assert [block.place for block in blocks] == [Even(first=0, step=4), Even(first=60, step=4)]
    assert all(block.real.all() for block in blocks)
    _check(readers, dict.fromkeys(some.tolist(), 1))
    # Of few, all are copied.
    (block,) = _blocks(readers, np.array([0, 5, 20]), 199)
    assert isinstance(block.place, Scattered)


def test_branches_read_what_they_share_once() -> None:
    readers = Readers(rows=9)
    _check(readers, {0: 3 * PAGE_TOKENS})
    for slot in range(1, 9):
        readers.fork(0, slot, 3 * PAGE_TOKENS)
    for slot in range(9):
        readers.pages.extend(slot, 3 * PAGE_TOKENS + 1)
    blocks = _blocks(readers, np.arange(9), 3 * PAGE_TOKENS)
    shared, own = sorted(blocks, key=lambda block: -block.token.shape[1])
    # Nine queries over 192 keys, once; and nine over a key of their own, in place.
    assert shared.token.tolist() == [list(range(9))]
    assert (shared.key_position <= shared.last.max()).sum() == 3 * PAGE_TOKENS
    assert own.token[own.real].tolist() == list(range(9))
    assert isinstance(own.place, Even)


@pytest.mark.parametrize("native", [False, True])
def test_float32_is_exact_to_its_rounding(native: bool) -> None:
    readers = Readers(dtype=torch.float32, native=native)
    _check(readers, {0: 300}, tolerance=1e-5)
    for slot in range(1, 6):
        readers.fork(0, slot, 250 + slot)
    _check(readers, {slot: 1 + slot for slot in range(6)}, tolerance=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_both_kernels_say_the_same(masked: bool) -> None:
    random = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(3, 2, n, 8, generator=random, dtype=torch.float64) for n in (5, 64, 64))
    mask = torch.zeros(3, 1, 5, 64, dtype=torch.float64)
    mask[:, :, :, 40:] = torch.finfo(mask.dtype).min / 2
    for got, wanted in zip(
        *(f(query, key, value, mask if masked else None, SCALE) for f in (attend, written_out)), strict=True
    ):
        torch.testing.assert_close(got, wanted, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_machine_code_is_exact_where_few_keys_weigh_all(dtype: torch.dtype) -> None:
    readers = Readers(dtype=dtype, native=True)
    readers.extend(0, 150)
    noise = 40 * readers._noise(HEADS, 150), 40 * readers._noise(KV_HEADS, 150), readers._noise(KV_HEADS, 150)
    whole = readers.attends(readers.cache, readers.pages, np.arange(1), np.zeros(1, np.int64), np.asarray([150]))
    wanted = alone(*(x.double() for x in noise), None)
    tolerance = 1e-3 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(whole(0, *noise, SCALE).double(), wanted, atol=tolerance, rtol=tolerance)


def test_what_is_no_number_stays_none() -> None:
    readers = Readers(dtype=torch.float32, native=True)
    readers.extend(0, 70)
    query, key, value = (readers._noise(heads, 70) for heads in (HEADS, KV_HEADS, KV_HEADS))
    query[0, 5] = torch.nan
    whole = readers.attends(readers.cache, readers.pages, np.arange(1), np.zeros(1, np.int64), np.asarray([70]))
    bad = whole(0, query, key, value, SCALE).isnan().any(-1)
    assert bad.nonzero().tolist() == [[0, 5]]


def test_machine_code_says_the_same_however_many_threads() -> None:
    found: list[Tensor] = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        readers = Readers(native=True)
        _check(readers, {0: 300, 1: 90})
        readers.fork(0, 2, 250)
        found.append(readers.read({0: 1, 1: 100, 2: 70})[0])
    torch.set_num_threads(1)
    assert torch.equal(*found)


def test_numbers_of_another_type_are_refused() -> None:
    readers = Readers(native=True)
    readers.extend(0, 3)
    query, key, value = (readers._noise(heads, 3) for heads in (HEADS, KV_HEADS, KV_HEADS))
    whole = readers.attends(readers.cache, readers.pages, np.arange(1), np.zeros(1, np.int64), np.asarray([3]))
    for wrong in ((query.float(), key, value), (query, key.float(), value), (query, key, value.float())):
        with pytest.raises(TypeError, match=r"got numbers of torch.float32; need torch.float64"):
            whole(0, *wrong, SCALE)
