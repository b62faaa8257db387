"""Dealing requests out to processes."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.engine.router import CHUNK, Router, Work


def work(*prompt: int, tokens: int = 32, length: int = 128) -> Work:
    """A prompt of so many tokens that begins with some numbers and goes on with the last of them."""
    return Work(prompt=(*prompt, *[prompt[-1]] * (length - len(prompt))), tokens=tokens)


def test_trees_stay_whole_and_processes_get_equally_many() -> None:
    router = Router(2, slots=64, cache_tokens=10_000)
    burst = [work(tree) for _ in range(8) for tree in range(6)]
    places = router.route(burst)
    assert router.load == [24, 24]
    assert {len({place for item, place in zip(burst, places, strict=True) if item == one}) for one in burst} == {1}


def test_one_tree_is_spread_when_others_would_be_idle() -> None:
    places = Router(4, slots=64, cache_tokens=10_000).route([work(1) for _ in range(32)])
    assert max(Counter(places).values()) <= 32 // 4 + 128 // 32
    assert set(places) == {0, 1, 2, 3}


def test_a_chain_goes_on_where_it_was() -> None:
    router = Router(2, slots=64, cache_tokens=10_000)
    first = router.route([work(tree) for tree in range(8)])
    for place in first:
        router.done(place)
    longer = [Work(prompt=(*work(tree).prompt, *range(40)), tokens=32) for tree in reversed(range(8))]
    assert router.route(longer) == first[::-1]


def test_what_was_read_is_read_again_only_where_that_is_shorter_than_to_wait() -> None:
    router = Router(2, slots=64, cache_tokens=10_000)
    home = router.route([work(1, length=4 * CHUNK + 1)])[0]
    # Four chunks are worth waiting for 128 tokens: four requests of 32 ahead, not five.
    places = [router.route([work(1, length=4 * CHUNK + 1)])[0] for _ in range(6)]
    assert places[:4] == [home] * 4
    assert places[4] == 1 - home


def test_a_process_without_a_free_slot_gets_nothing_while_another_has_one() -> None:
    router = Router(2, slots=3, cache_tokens=10_000)
    assert sorted(router.route([work(1, length=1000) for _ in range(6)])) == [0, 0, 0, 1, 1, 1]


def test_nothing_is_known_of_a_process_that_forgot() -> None:
    router = Router(2, slots=64, cache_tokens=10_000)
    home = router.route([work(1)])[0]
    router.reset(home)
    assert router.route([work(1)]) == [1 - home]


def test_only_so_much_is_remembered() -> None:
    router = Router(2, slots=64, cache_tokens=4 * CHUNK)
    for place in router.route([work(1, length=4 * CHUNK + 1), work(2, length=4 * CHUNK + 1)]):
        router.done(place)
    third = router.route([work(3, length=4 * CHUNK + 1)])[0]
    router.done(third)
    # Where the third went, what was read before is forgotten: a burst of the two goes elsewhere only for its own sake.
    assert router.route([work(2, length=4 * CHUNK + 1)]) == [1 - third]


@pytest.mark.parametrize("length", [1, CHUNK, CHUNK + 1])
def test_short_prompts_go_where_there_is_least_to_do(length: int) -> None:
    router = Router(3, slots=64, cache_tokens=10_000)
    routed = router.route([work(1, tokens=CHUNK + 1, length=length) for _ in range(9)])
    assert sorted(routed) == [0] * 3 + [1] * 3 + [2] * 3


@given(
    processes=st.integers(1, 4),
    slots=st.integers(1, 6),
    rounds=st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 3), st.integers(1, 300), st.integers(1, 64)), max_size=12),
            st.randoms(use_true_random=False),
        ),
        max_size=6,
    ),
)
def test_every_request_is_counted_once_and_no_slot_stays_free_beside_a_queue(
    processes: int, slots: int, rounds: list[tuple[list[tuple[int, int, int]], Random]]
) -> None:
    router = Router(processes, slots=slots, cache_tokens=1000)
    flying = list[int]()
    for burst, random in rounds:
        before = list(router.load)
        places = router.route([work(first, tokens=tokens, length=length) for first, length, tokens in burst])
        assert router.load == [load + places.count(place) for place, load in enumerate(before)]
        if max(router.load) > max(slots, *before):
            assert min(router.load) >= slots
        flying += places
        for _ in range(random.randint(0, len(flying))):
            router.done(flying.pop(random.randrange(len(flying))))
    assert router.load == [flying.count(place) for place in range(processes)]
