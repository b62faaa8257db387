"""Chooses the worker process of a request: the one that holds its prefix, unless it is overloaded."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

CHUNK = 32
"""Tokens of a prefix chunk. Recomputing fewer tokens is cheaper than waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The cost of a request.

    Attributes:
        prompt: The prompt.
        tokens: Most new tokens.
        process: The process that must take it; None is any.
    """

    prompt: tuple[int, ...]
    tokens: int
    process: int | None = None


class Router:
    """Routes requests to P processes by their cached prefixes.

    A burst of requests is routed together: requests with one prefix go to one process, up to its fair share of the
    requests in flight. Above this share, a request still goes to the process with its prefix while recomputing the
    prefix elsewhere costs more tokens than waiting:

        known tokens >= new tokens x (requests there - requests at the least loaded process)

    Attributes:
        load: [P], the requests in flight of each process.
    """

    def __init__(self, processes: int, *, slots: int, cache_tokens: int) -> None:
        """Start without known prefixes.

        Args:
            processes: P.
            slots: Concurrent requests of a process.
            cache_tokens: Tokens in the KV cache of a process.
        """
        self.load = [0] * processes
        self._slots = slots
        self._max_chunks = max(cache_tokens // CHUNK, 1)
        # Per process: hashes of chunks with all tokens before them, in order of their last use.
        self._read: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(processes)]

    def route(self, burst: Sequence[Work]) -> list[int]:
        """Return the process of each request and increment its load until `done`."""
        processes = [0] * len(burst)
        fair = -(-(sum(self.load) + len(burst)) // len(self.load))
        # Sorted, so that requests with one prefix are adjacent.
        for request in sorted(range(len(burst)), key=lambda request: burst[request].prompt):
            work = burst[request]
            chunks = _chunks(work.prompt)
            known = [_leading(read, chunks) for read in self._read]
            process = self._choose(known, work.tokens, fair) if work.process is None else work.process
            self._note(process, chunks)
            self.load[process] += 1
            processes[request] = process
        return processes

    def done(self, process: int) -> None:
        """Decrement the load of a process after a request."""
        self.load[process] -= 1

    def reset(self, process: int | None = None) -> None:
        """Drop the known prefixes of a process, or of all."""
        for read in self._read if process is None else [self._read[process]]:
            read.clear()

    def _choose(self, known: Sequence[int], tokens: int, fair: int) -> int:
        order = range(len(known))
        best = max(order, key=lambda process: (known[process], -self.load[process]))
        free = min(order, key=lambda process: (self.load[process], -known[process]))
        ahead = self.load[best] - self.load[free]
        if self.load[best] < min(fair, self._slots) or not ahead:
            return best
        crowded = self.load[best] >= self._slots > self.load[free]
        return free if crowded or known[best] * CHUNK < tokens * ahead else best

    def _note(self, process: int, chunks: Sequence[int]) -> None:
        read = self._read[process]
        for chunk in chunks:
            read[chunk] = None
            read.move_to_end(chunk)
        while len(read) > self._max_chunks:
            read.popitem(last=False)


def _chunks(prompt: tuple[int, ...]) -> list[int]:
    """The hash of each whole chunk with all tokens before it; the last token is always computed."""
    hashes, before = list[int](), 0
    for begin in range(0, len(prompt) - CHUNK, CHUNK):
        before = hash((before, prompt[begin : begin + CHUNK]))
        hashes.append(before)
    return hashes


def _leading(read: OrderedDict[int, None], chunks: Sequence[int]) -> int:
    for index, chunk in enumerate(chunks):
        if chunk not in read:
            return index
    return len(chunks)
