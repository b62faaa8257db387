import os
import pickle
import threading
import time
from pathlib import Path

import pytest

from bough.usercode.trial import TrialError, _framed, _received, try_in_child


class Odd(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"odd {one + other}")


def odd() -> None:
    raise Odd(1, 2)


def try_it(function, deadline_s: float = 60) -> None:
    try_in_child(function, deadline_s=deadline_s, memory_bytes=1 << 28)


def children() -> set[str]:
    """The processes that this one has to wait for."""
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}


def test_a_trial_changes_nothing_here() -> None:
    found: list[int] = []
    before = children()
    try_it(lambda: found.append(1))
    assert found == []
    assert children() == before


def test_errors_come_back() -> None:
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        try_it(lambda: 1 / 0)
    with pytest.raises(MemoryError):
        try_it(lambda: b"a" * (1 << 30))
    with pytest.raises(TrialError, match="Odd: odd 3"):
        try_it(odd)


def finish(writes: int, rest: bytes) -> None:
    os.write(writes, rest)
    os.close(writes)


@pytest.mark.parametrize("end", [b"", b"\0\0\0", b"one."])
def test_a_message_in_two_parts_is_read_whole(end: bytes) -> None:
    """A part may end in a full stop, as a pickle does."""
    message = pickle.dumps(ValueError("one. two"))
    framed = _framed(message)
    cut = framed.index(end) + len(end) or 1
    for rest, expected in ((framed[cut:], message), (b"", b"")):
        reads, writes = os.pipe()
        os.write(writes, framed[:cut])
        later = threading.Timer(0.02, finish, (writes, rest))
        later.start()
        assert _received(reads, 60) == expected
        later.join()
        os.close(reads)


def test_a_crash_is_named() -> None:
    with pytest.raises(TrialError, match="the process died: Aborted"):
        try_it(os.abort)
    with pytest.raises(TrialError, match="the process died"):
        try_it(lambda: os._exit(0))


def test_a_hang_ends_at_its_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(TrialError, match=r"it did not end within 0\.2 s"):
        try_it(threading.Event().wait, deadline_s=0.2)
    assert time.monotonic() - began < 30
