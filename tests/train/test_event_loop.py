import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bough.train.event_loop import run_coroutine
from bough.train.interrupt import interruptible


async def _threads_of_loops() -> tuple[str, asyncio.AbstractEventLoop]:
    await asyncio.sleep(0)
    return threading.current_thread().name, asyncio.get_running_loop()


def _in_a_running_loop(work: Callable[[], object]) -> object:
    """What a cell of a notebook returns: its kernel runs the loop that the cell is called from."""

    async def cell() -> object:
        return work()

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


def test_without_a_running_loop_the_coroutine_runs_in_this_thread() -> None:
    thread, _ = run_coroutine(_threads_of_loops())
    assert thread == threading.current_thread().name


def test_the_handler_of_ctrl_c_does_not_hold_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 takes handlers for numbers, and writes each as text when it is none."""
    handlers = list[str]()

    def known(value: object, kind: object) -> object:
        del kind
        handlers.append(repr(value))
        return value

    async def result() -> str:
        return "a whole tree"

    monkeypatch.setitem(vars(signal), "_int_to_enum", known)
    assert run_coroutine(result()) == "a whole tree"
    assert handlers
    assert not any("a whole tree" in each for each in handlers)


def test_in_a_running_loop_the_coroutine_has_a_loop_of_its_own() -> None:
    (thread, loop) = _in_a_running_loop(lambda: run_coroutine(_threads_of_loops()))
    assert thread.startswith("bough-loop")
    assert loop.is_closed()


def test_an_error_in_the_coroutine_is_raised_to_the_caller() -> None:
    async def fails() -> None:
        raise ValueError("no such lake")

    with pytest.raises(ValueError, match="no such lake"):
        _in_a_running_loop(lambda: run_coroutine(fails()))


def test_ctrl_c_cancels_the_coroutine_and_waits_until_it_has_cleaned_up() -> None:
    began, done = threading.Event(), []

    async def long() -> None:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            done.append("cleaned up")

    def press() -> None:
        began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        _in_a_running_loop(lambda: run_coroutine(long()))
    assert done == ["cleaned up"]


class _DropsErrors:
    """Python ignores what is raised while it removes an object."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("ignored", [False, True])
def test_sigterm_cancels_wherever_it_comes(ignored: bool) -> None:
    """Also in a process that a shell started in the background, with Ctrl-C ignored."""
    done: list[str] = []

    async def long() -> None:
        try:
            _DropsErrors()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            done.append("cleaned up")

    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match="bough resume runs/x"), interruptible(Path("runs/x")):
            run_coroutine(long())
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["cleaned up"]
