"""How ranks that torchrun started find each other in its store, which stays when torchrun starts them again."""

import threading
import time
from collections.abc import Generator
from contextlib import suppress
from datetime import timedelta
from queue import Queue

import pytest

from bough.launch import LaunchError
from bough.learner.rendezvous import Store, connected_store, served_store
from bough.learner.torchrun_ranks import StoreLeader, published

SECRET = b"s" * 32


LIMIT = timedelta(seconds=60)


@pytest.fixture
def port() -> Generator[int]:
    store, port = served_store("127.0.0.1", LIMIT)
    yield port
    del store


def connected(port: int) -> Store:
    """Each rank has a connection of its own, which one call at a time uses."""
    return connected_store("127.0.0.1", port, LIMIT)


def follow(port: int, secret: bytes = SECRET, rank: int = 1, after_s: float = 0.0) -> Queue[bytes]:
    """What another rank is sent, in a thread; b"ended" at its end."""
    seen = Queue[bytes]()

    def receive() -> None:
        time.sleep(after_s)
        with suppress(RuntimeError):  # the store is gone
            for content, _ in published(connected(port), secret, rank, "10.0.0.1"):
                seen.put(content)
            seen.put(b"ended")

    threading.Thread(target=receive, daemon=True).start()
    return seen


def test_ranks_started_again_get_nothing_of_those_before(port: int) -> None:
    """Machines count the starts of torchrun apart, so only names in the store tell one attempt from the next."""
    for attempt in (b"first", b"second"):
        lead = StoreLeader(connected(port), SECRET, 3)
        # Until the last rank comes, the store has its name of the attempt before.
        ranks = follow(port), follow(port, rank=2, after_s=0.3)
        lead.meet(60)
        assert lead.host == "10.0.0.1"
        lead.publish(attempt)
        assert [rank.get(timeout=60) for rank in ranks] == [attempt] * 2
    lead.end()
    assert ranks[0].empty(), "a run that fails ends no rank with success"
    lead.ended_well = True
    lead.end()
    assert [rank.get(timeout=60) for rank in ranks] == [b"ended"] * 2


def test_a_rank_with_another_secret_or_none_is_named(port: int) -> None:
    follow(port, b"")
    needs = r"rank 1 of 2: got a message without the run's secret.*same BOUGH_SECRET"
    with pytest.raises(PermissionError, match=needs):
        StoreLeader(connected(port), SECRET, 2).meet(60)


def test_ranks_that_do_not_come_are_named(port: int) -> None:
    follow(port)
    with pytest.raises(LaunchError, match="got no answer of ranks 2, 3 of 4 within 2 s; need all to reach"):
        StoreLeader(connected(port), SECRET, 4).meet(2)
