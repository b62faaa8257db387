"""Code that uses too much processor time is ended where it runs."""

import os
import threading
import time

import pytest

from bough.usercode import processor_limit as module
from bough.usercode.processor_limit import OutOfTime, processor_limit


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.01)


def endless() -> None:
    while True:
        sum(range(100))


def ended() -> list[bool]:
    found: list[bool] = []
    try:
        with processor_limit(0.05):
            endless()
    except OutOfTime:
        found.append(True)
    return found


def test_a_loop_without_an_end_is_ended_in_any_thread_and_in_a_fork() -> None:
    assert ended()
    found: list[list[bool]] = []
    beside = threading.Thread(target=lambda: found.append(ended()))
    beside.start()
    beside.join()
    assert found == [[True]]
    child = os.fork()
    if child == 0:
        os._exit(7 if ended() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_waiting_and_what_comes_later_are_not_ended() -> None:
    with processor_limit(0.05):
        time.sleep(0.3)
    with processor_limit(0.05):
        pass
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    assert not module._running
