"""Calls in a child process end at their deadline."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bough.launch import CallEnded, bounded_call


def test_results_and_errors_come_back() -> None:
    assert bounded_call("operator:add", 2, 3, seconds=10) == 5
    with pytest.raises(ValueError, match="invalid literal"):
        bounded_call("builtins:int", "x", seconds=10)
    child = bounded_call("os:getpid", seconds=10)
    assert child == bounded_call("os:getpid", seconds=10) != os.getpid(), "one child for all calls"
    with ThreadPoolExecutor(4) as pool:
        numbers = range(40)
        assert [*pool.map(lambda each: bounded_call("operator:neg", each, seconds=10), numbers)] == [
            -each for each in numbers
        ]


def test_a_late_call_ends_and_the_next_goes_on() -> None:
    child = bounded_call("os:getpid", seconds=10)
    begun = time.monotonic()
    with pytest.raises(CallEnded, match=r"more than 0\.1 seconds") as late:
        bounded_call("builtins:pow", 3, 10**9, seconds=0.1)
    assert late.value.late
    assert time.monotonic() - begun < 10
    assert bounded_call("os:getpid", seconds=10) != child
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.parametrize("function", ["os:abort", "sys:exit", "operator:add"])
def test_a_call_that_ends_its_process_is_an_error(function: str) -> None:
    with pytest.raises(CallEnded, match="its process ended") as ended:
        bounded_call(function, seconds=10)
    assert not ended.value.late
    assert bounded_call("operator:add", 2, 3, seconds=10) == 5


def test_a_fork_has_a_child_of_its_own() -> None:
    child = bounded_call("os:getpid", seconds=10)
    read, write = os.pipe()
    forked = os.fork()
    if forked == 0:
        os.write(write, str(bounded_call("os:getpid", seconds=10)).encode())
        os._exit(0)
    os.waitpid(forked, 0)
    assert int(os.read(read, 20)) != child == bounded_call("os:getpid", seconds=10)
    os.close(read)
    os.close(write)
