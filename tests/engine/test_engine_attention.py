import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.missing import need
from torch import Tensor
from toys import Toy

from bough.engine.attention import MakeAttention, PagedAttention, TorchAttention, attention_for
from bough.engine.kv_cache import KVCache
from bough.engine.page_runs import page_runs
from bough.engine.pages import PAGE_TOKENS, Pages

HEADS, KV_HEADS, WIDTH = 6, 2, 8
SCALE = 0.6


class Readers:
    """Slots that read random tokens, beside all keys and values of each, kept apart."""

    def __init__(
        self,
        seed: int = 0,
        rows: int = 6,
        max_pages: int = 400,
        dtype: torch.dtype = torch.float64,
        *,
        native: bool = False,
    ) -> None:
        model = Toy(dtype=dtype, heads=HEADS, kv_heads=KV_HEADS)
        if native:
            need("compiler")
        self.make: MakeAttention = attention_for(model) if native else TorchAttention
        assert native == (self.make is not TorchAttention), "a machine with a compiler has the kernel"
        self.cache, self.pages, self.dtype = KVCache(model), Pages(rows=rows, max_pages=max_pages), dtype
        self.random = torch.Generator().manual_seed(seed)
        self.keys = [self._noise(KV_HEADS, 0) for _ in range(rows)]
        self.values = list(self.keys)
        self.attention: PagedAttention | None = None
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
        self.pages.extend(slot, end)
        self.cache.reserve(len(self.pages.readers) * PAGE_TOKENS)

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
            self.attention = self.make(self.cache, self.pages, slots, first, many)
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
    whole = readers.make(readers.cache, readers.pages, slots, first, count)
    every = whole(0, query, key, value, SCALE, window=window)
    rows = np.asarray([304, 309])
    few, attend_last = whole.last(slots[[0, 2]], (first + count - 1)[[0, 2]], rows)
    found = attend_last(0, query, key, value, SCALE, window=window)
    torch.testing.assert_close(found, every[:, rows], atol=1e-12, rtol=1e-12)
    assert few.advance() == native


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


def _check(readers: Readers, count: dict[int, int], window: int | None = None, tolerance: float = 1e-12) -> None:
    got, wanted = readers.read(count, window)
    torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("window", [None, 3])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_the_kernel_plans_once_for_slots_that_only_decode(seed: int, window: int | None) -> None:
    draw = random.Random(seed)
    readers = Readers(seed, native=True)
    _check(readers, {0: draw.randint(1, 150)})
    for slot in range(1, 6):
        source = draw.randrange(slot)
        readers.fork(source, slot, draw.randint(1, readers.length(source)))
        _check(readers, {slot: draw.randint(1, 20), 0: draw.randint(1, 3)})
    some = draw.sample(range(6), draw.randint(1, 6))
    went_on = 0
    for number in range(40):
        got, wanted = readers.read(dict.fromkeys(some, 1), window, goes_on=number > 0)
        torch.testing.assert_close(got, wanted, atol=1e-12, rtol=1e-12)
        went_on += readers.went_on
    # Each of six slots begins a page once in 64 passes.
    assert went_on >= 40 - 1 - len(some)


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
def test_float32_is_exact_to_its_rounding(native: bool) -> None:
    readers = Readers(dtype=torch.float32, native=native)
    _check(readers, {0: 300}, tolerance=1e-5)
    for slot in range(1, 6):
        readers.fork(0, slot, 250 + slot)
    _check(readers, {slot: 1 + slot for slot in range(6)}, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_machine_code_is_exact_where_few_keys_weigh_all(dtype: torch.dtype) -> None:
    readers = Readers(dtype=dtype, native=True)
    readers.extend(0, 150)
    noise = 40 * readers._noise(HEADS, 150), 40 * readers._noise(KV_HEADS, 150), readers._noise(KV_HEADS, 150)
    whole = readers.make(readers.cache, readers.pages, np.arange(1), np.zeros(1, np.int64), np.asarray([150]))
    wanted = alone(*(x.double() for x in noise), None)
    tolerance = 1e-3 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(whole(0, *noise, SCALE).double(), wanted, atol=tolerance, rtol=tolerance)


def test_nan_stays_nan() -> None:
    readers = Readers(dtype=torch.float32, native=True)
    readers.extend(0, 70)
    query, key, value = (readers._noise(heads, 70) for heads in (HEADS, KV_HEADS, KV_HEADS))
    query[0, 5] = torch.nan
    whole = readers.make(readers.cache, readers.pages, np.arange(1), np.zeros(1, np.int64), np.asarray([70]))
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


def test_another_dtype_is_refused() -> None:
    readers = Readers(native=True)
    readers.extend(0, 3)
    query, key, value = (readers._noise(heads, 3) for heads in (HEADS, KV_HEADS, KV_HEADS))
    whole = readers.make(readers.cache, readers.pages, np.arange(1), np.zeros(1, np.int64), np.asarray([3]))
    for wrong in ((query.float(), key, value), (query, key.float(), value), (query, key, value.float())):
        with pytest.raises(TypeError, match=r"got a tensor of torch.float32; need torch.float64"):
            whole(0, *wrong, SCALE)


def test_branches_read_shared_pages_once() -> None:
    readers = Readers(rows=9)
    _check(readers, {0: 3 * PAGE_TOKENS})
    for slot in range(1, 9):
        readers.fork(0, slot, 3 * PAGE_TOKENS)
    for slot in range(9):
        readers.pages.extend(slot, 3 * PAGE_TOKENS + 1)
    one = np.ones(9, dtype=np.int64)
    runs = page_runs(readers.pages, np.arange(9), 3 * PAGE_TOKENS * one, one)
    # Three shared pages for nine queries, and nine runs of one page for one query.
    sizes = list(zip(np.diff(runs.page_begin).tolist(), np.diff(runs.query_begin).tolist(), strict=True))
    assert sorted(sizes) == [(1, 1)] * 9 + [(3, 9)]
