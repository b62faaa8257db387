"""A worker process that starts in place of one that has ended."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from bough.engine.worker import EngineWorker
from bough.engine.worker_process import Message


@dataclass(slots=True, eq=False)
class Replacement:
    """A process that starts, in a thread, in place of one that has ended.

    Attributes:
        worker: Set when it has started.
        starts: As of `EngineWorker`.
        outbox: Messages that it gets when it has started.
    """

    worker: Future[EngineWorker]
    starts: int
    outbox: list[Message] = field(default_factory=list[Message])


def end_started(started: Future[EngineWorker]) -> None:
    """End a process that has started after the engine was closed."""
    if started.exception() is None:
        started.result().end()
