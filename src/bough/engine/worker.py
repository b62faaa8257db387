"""One worker process of a `MultiProcessEngine`, seen from the engine."""

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bough.engine.decoder import Stats
from bough.engine.engine import Completion
from bough.engine.router import Work
from bough.engine.worker_process import Call, Message, Report
from bough.launch import LaunchError, await_ready, limit_waits

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

END_S = 5.0
"""Seconds that a process may take to exit by itself."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A call in flight.

    Attributes:
        call: The request.
        work: Its cost, for the router.
        future: Receives the result.
    """

    call: Call
    work: Work
    future: "asyncio.Future[Completion | tuple[float, ...]]"

    def fail(self, error: Exception) -> None:
        """Raise `error` in the caller, if it still waits."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, kw_only=True, eq=False)
class EngineWorker:
    """A worker process, its connection, and its jobs.

    Attributes:
        pid: Its process id on its machine, where it is known.
        connection: The channel to it.
        ending: Ends it, after as many seconds at most; returns its exit status, minus the signal where one killed it.
        jobs: Jobs in flight, by call id.
        ready: Whether it has built its engine.
        stats: Its counts, as last reported.
        busy_s: Its seconds of passes, as last reported.
        replaced: Processes that its engine replaced, as last reported.
        wrong: The error of its start, if any.
        hung: Whether it did not answer in time.
        starts: Number of starts in a row without a process that became ready, this one included.
        answered: When it last answered, or got requests after it had none, on the monotonic clock.
        start_s: Longest time of its start, seconds; also the longest wait for it to take or finish a message meanwhile.
        deadline_s: The longest such wait, and the longest time without an answer, once it is ready, seconds.
    """

    pid: int | None
    connection: "Connection"
    ending: Callable[[float], int | None]
    jobs: dict[int, Job] = field(default_factory=dict[int, Job])
    ready: bool = False
    stats: Stats = field(default_factory=Stats)
    busy_s: float = 0.0
    replaced: int = 0
    wrong: str = ""
    hung: bool = False
    starts: int = 1
    answered: float = 0.0
    start_s: float
    deadline_s: float

    def __post_init__(self) -> None:
        limit_waits(self.connection, self.limit_s)

    def take(self, jobs: Sequence[Job]) -> None:
        """Put jobs in flight."""
        if not self.jobs:
            self.answered = time.monotonic()
        self.jobs.update((job.call.call_id, job) for job in jobs)

    @property
    def limit_s(self) -> float:
        """Longest wait for it, seconds."""
        return self.deadline_s if self.ready else self.start_s

    @property
    def is_late(self) -> bool:
        """Whether it has jobs and has not answered in time."""
        return bool(self.jobs) and time.monotonic() - self.answered > self.limit_s

    def await_ready(self) -> None:
        """Wait until the process is ready.

        Raises:
            ValueError: when it cannot build an engine.
            LaunchError: when it died, or is not ready in time; the process is ended.
        """
        try:
            await_ready(self.connection, self.start_s)
        except LaunchError as error:
            raise LaunchError(
                f"an engine process did not start: {error} (exit status {self.end()}); need one that is ready within "
                f"{self.start_s:g} s: take a smaller model, or a higher Replicas.start_s; a script that builds an "
                "engine with processes must do so below if __name__ == '__main__'"
            ) from error
        self._is_ready()

    def send(self, message: Message) -> None:
        """Send a message to the process.

        Raises:
            OSError: when the process has ended or hangs.
        """
        with self._in_time():
            self.connection.send(message)

    def receive(self) -> Report | None:
        """Return its next report; None for the message that it is ready.

        Raises:
            EOFError, OSError: when the process has ended or hangs.
        """
        with self._in_time():
            report: Report | str | None = self.connection.recv()
        if isinstance(report, str):
            self.wrong = report
            raise EOFError(report)
        self._is_ready()
        self.answered = time.monotonic()
        if report is not None:
            self.stats, self.busy_s, self.replaced = report.stats, report.busy_s, report.replaced
        return report

    def end(self) -> int | None:
        """End the process; returns its exit status, minus the signal where one killed it."""
        if goes_by_itself := self.ready and not self.hung:
            with suppress(OSError):
                self.connection.send("end")
        status = self.ending(END_S if goes_by_itself else 0)
        self.connection.close()
        return status

    def _is_ready(self) -> None:
        if not self.ready:
            self.ready = True
            limit_waits(self.connection, self.limit_s)

    @contextmanager
    def _in_time(self) -> Generator[None]:
        """Mark the process as hung when it leaves a message half sent or half read."""
        try:
            yield
        except BlockingIOError:
            self.hung = True
            raise
