import numpy as np
import pytest

from bough.engine import Request, Sampling
from bough.engine.slots import SHARED_TOKENS, Reuse, Slots

LONG = tuple(range(100, 100 + SHARED_TOKENS))
"""Enough to be shared."""


def _tokens(*tokens: int) -> np.ndarray:
    return np.array(tokens, dtype=np.int64)


def _holding(*held: tuple[int, ...], rows: int = 4, max_tokens: int = 1000) -> Slots:
    """Slots that have read these, all idle."""
    slots = Slots(rows=rows, max_tokens=max_tokens)
    for slot, tokens in enumerate(held):
        slots.take(slot, _tokens(*tokens), 0)
        slots.read[slot] = len(tokens)
        slots.release(slot)
    return slots


def test_find_takes_the_longest_common_prefix() -> None:
    slots = _holding((*LONG, 1, 2), (*LONG, 1, 2, 3, 4), (9,))
    shared = SHARED_TOKENS + 3
    assert slots.find(_tokens(*LONG, 1, 2, 3, 7, 7)) == Reuse(slot=1, tokens=shared, soon_tokens=shared)
    assert slots.find(_tokens(5, 5)).tokens == 0


def test_what_is_short_is_not_shared_but_taken_over() -> None:
    slots = _holding(LONG, (1, 2, 3), (1, 2))
    assert slots.find(_tokens(*LONG[:-1], 7, 7)).tokens == 0
    assert slots.find(_tokens(*LONG, 7)) == Reuse(slot=0, tokens=SHARED_TOKENS, soon_tokens=SHARED_TOKENS)
    assert slots.find(_tokens(1, 2, 8)) == Reuse(slot=2, tokens=2, soon_tokens=2)
    slots.busy[2] = True
    assert slots.find(_tokens(1, 2, 8)).tokens == 0


def test_find_never_counts_the_last_token() -> None:
    slots = _holding((*LONG, 3))
    assert slots.find(_tokens(*LONG)).tokens == 0  # one fewer than is shared
    assert slots.find(_tokens(*LONG, 3)).tokens == SHARED_TOKENS
    assert slots.find(_tokens(1)).tokens == 0


def test_find_does_not_match_what_lies_behind_a_slots_tokens() -> None:
    slots = _holding((1, 0))
    assert slots.find(_tokens(1, 0, 0, 0, 0)).tokens == 2


def test_find_tells_what_will_soon_be_read() -> None:
    slots = _holding()
    slots.take(2, _tokens(*range(50)), 0)
    slots.read[2] = 20
    assert slots.find(_tokens(*range(40), 99)) == Reuse(slot=2, tokens=20, soon_tokens=40)
    slots.read[2] = 10
    assert slots.find(_tokens(*range(40), 99)).soon_tokens == 40


def test_of_equals_find_takes_an_idle_one_that_can_be_taken_over() -> None:
    slots = _holding((1, 2, 3), (1, 2), (1, 2))
    slots.busy[1] = True
    assert slots.find(_tokens(1, 2, 8)).slot == 2


def test_choose_takes_over_a_slot_when_nothing_of_it_is_lost() -> None:
    slots = _holding((1, 2), (3, 4, 5))
    assert slots.choose(Reuse(slot=1, tokens=3, soon_tokens=3)) == 1
    # Two of three reused: the third may still serve someone, and slot 2 is empty.
    assert slots.choose(Reuse(slot=1, tokens=2, soon_tokens=2)) == 2


def test_choose_gives_the_oldest_idle_slot_away_when_none_is_empty() -> None:
    slots = _holding((1,), (2,), (3,), rows=3)
    slots.take(0, _tokens(1, 1), 1)
    slots.release(0)
    assert slots.choose(Reuse(slot=2, tokens=0, soon_tokens=0)) == 1
    slots.busy[1] = True
    assert slots.choose(Reuse(slot=0, tokens=0, soon_tokens=0)) == 2


@pytest.mark.parametrize("max_tokens", [200, 1000])
def test_slots_grow_with_what_they_hold(max_tokens: int) -> None:
    slots = _holding((7, 8), rows=2, max_tokens=max_tokens)
    slots.take(1, _tokens(*range(190)), 0)
    slots.aim(1, Request(prompt_tokens=(0,), sampling=Sampling(max_tokens=32), stop_tokens=(5, 6), seed=-1))
    assert slots.limit[1] == min(222, max_tokens)
    one = _tokens(1)
    for step in range(190, int(slots.limit[1])):
        complete = slots.append(one, _tokens(step), np.array([-0.5]), np.array([0.25]))
        assert complete.tolist() == [step + 1 == slots.limit[1]]
    end = int(slots.known[1])
    assert slots.token[1, 189:end].tolist() == list(range(189, end))
    assert slots.logprob[1, 190:end].tolist() == [-0.5] * (end - 190)
    assert slots.entropy[1, 190:end].tolist() == [0.25] * (end - 190)
    assert slots.token[0, :2].tolist() == [7, 8]


def test_stop_tokens_are_each_slots_own() -> None:
    slots = _holding()
    for slot, stop in enumerate([(), (4,), (5, 4)]):
        slots.take(slot, _tokens(1), 0)
        slots.aim(slot, Request(prompt_tokens=(1,), sampling=Sampling(), stop_tokens=stop, seed=0))
    complete = slots.append(_tokens(0, 1, 2), _tokens(4, 4, 4), np.zeros(3), np.zeros(3))
    assert complete.tolist() == [False, True, True]
    slots.aim(2, Request(prompt_tokens=(1,), sampling=Sampling(), stop_tokens=(), seed=0))
    assert not slots.append(_tokens(2), _tokens(4), np.zeros(1), np.zeros(1)).any()
