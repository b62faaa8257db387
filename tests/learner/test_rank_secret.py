"""What ranks exchange has a proof of the run's secret."""

import os
import socket
from datetime import timedelta
from typing import Any

import pytest
import torch

from bough.launch import SECRET_BYTES
from bough.learner.commands import JoinGroup
from bough.learner.process_group import RankFault
from bough.learner.ranks import RankGroup
from bough.learner.rendezvous import served_store


class Neighbour:
    """Shows whether it was unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return ran, ()


def ran() -> str:
    return os.environ.setdefault("BOUGH_TEST_RAN", "yes")


def test_nothing_of_a_neighbour_is_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of one: what it gathers has a proof of the secret, and its store is at a port of the range."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setenv("BOUGH_PORTS", str(free.getsockname()[1]))
    store, port = served_store("127.0.0.1", timedelta(seconds=60))
    assert str(port) == os.environ["BOUGH_PORTS"]
    join = JoinGroup(
        world_size=1, host="127.0.0.1", update_s=60, shards=False, threads=1, files={}, secret=b"s" * SECRET_BYTES
    )
    group = RankGroup(0, join, store)
    monkeypatch.setenv("BOUGH_TEST_RAN", "")
    monkeypatch.delenv("BOUGH_TEST_RAN")
    try:
        assert group.all_gather([1, "two"], torch.device("cpu")) == [1, "two"]
        message = group._signed(Neighbour())
        group._secret = b"o" * SECRET_BYTES
        with pytest.raises(RankFault, match="rank 0 of 1: got a message without the run's secret"):
            group._loaded(message, torch.device("cpu"))
        assert "BOUGH_TEST_RAN" not in os.environ
        group._secret = join.secret
        group._loaded(message, torch.device("cpu"))
        assert os.environ["BOUGH_TEST_RAN"] == "yes"
    finally:
        group.leave()
