"""Standard input, output and error of this process, opened again where code of a user has closed them."""

import os
import select
import sys
from functools import cache

STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
"""Names and modes, in the order of their descriptors."""


def keep_streams() -> None:
    """Keep a second descriptor of each stream, from the first call on."""
    for number in range(len(STREAMS)):
        _copy(number)


def reopen_streams() -> None:
    """Open the streams that are closed: their descriptors, from the kept ones, and their objects in `sys`."""
    for number in _closed():
        copy = _copy(number)
        if copy is not None and copy not in _closed(copy):
            os.dup2(copy, number)
    for number, (name, mode) in enumerate(STREAMS):
        if getattr(getattr(sys, name), "closed", False) and number not in _closed():
            stream = open(number, mode, errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _closed(*numbers: int) -> list[int]:
    """The closed descriptors among `numbers`, by default those of the streams; one system call."""
    poll = select.poll()
    for number in numbers or range(len(STREAMS)):
        poll.register(number, 0)
    return [number for number, event in poll.poll(0) if event & select.POLLNVAL]


@cache
def _copy(number: int) -> int | None:
    """A second descriptor of a stream; None for one that this process never had."""
    try:
        return os.dup(number)
    except OSError:
        return None
