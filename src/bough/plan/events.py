"""Discrete events: a clock with a heap of calls, and queues with servers."""

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any


class Clock:
    """Executes scheduled calls in the order of their times; calls of one time in the order of scheduling.

    Attributes:
        now: Simulated seconds.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def after(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call."""
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, call, arguments))

    def stop(self) -> None:
        """Drop all scheduled calls, so that `run` returns."""
        self._events.clear()

    def run(self) -> None:
        """Execute events until none is left."""
        while self._events:
            self.now, _, call, arguments = heapq.heappop(self._events)
            call(*arguments)


class Queue:
    """A first-come first-served queue with S servers.

    Attributes:
        servers: S.
        busy_s: Seconds of finished work, over all servers.
    """

    def __init__(self, clock: Clock, servers: int, held_s: Callable[[], float] = float) -> None:
        """Start without work.

        Args:
            clock: The clock.
            servers: S.
            held_s: At the end of work, the seconds for which its server is not free and `done` is not called.
        """
        self.servers, self.busy_s = servers, 0.0
        self._clock, self._free, self._held_s = clock, servers, held_s
        self._waiting: deque[tuple[float, Callable[..., None], tuple[Any, ...]]] = deque()

    def put(self, seconds: float, done: Callable[..., None], *arguments: Any) -> None:
        """Add work of some seconds; `done` is called at its end."""
        if self._free:
            self._free -= 1
            self._clock.after(seconds, self._end, seconds, done, arguments)
        else:
            self._waiting.append((seconds, done, arguments))

    def _end(self, seconds: float, done: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.busy_s += seconds
        held_s = self._held_s()
        if held_s > 0:
            self._clock.after(held_s, self._release, done, arguments)
        else:
            self._release(done, arguments)

    def _release(self, done: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self._waiting:
            following, call, values = self._waiting.popleft()
            self._clock.after(following, self._end, following, call, values)
        else:
            self._free += 1
        done(*arguments)
