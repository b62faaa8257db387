"""The engine's side of one worker process of a `MultiProcessEngine`."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

import torch
import torch.multiprocessing

from bough.engine.decoder import Stats
from bough.engine.engine import Completion
from bough.engine.router import Work
from bough.engine.worker_process import Call, Message, Report, serve

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from bough.engine.local import Local
    from bough.engine.model import Model

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
        process: The started process.
        connection: The pipe to it.
        jobs: Jobs in flight, by number.
        ready: Whether it has built its engine.
        stats: Its counts, as last reported.
        busy_s: Its seconds of passes, as last reported.
        wrong: The error of its start, if any.
    """

    process: BaseProcess
    connection: "Connection"
    jobs: dict[int, Job] = field(default_factory=dict[int, Job])
    ready: bool = False
    stats: Stats = field(default_factory=Stats)
    busy_s: float = 0.0
    wrong: str = ""

    @staticmethod
    def start(config: "Local", model: "Model", *, policy_version: int, threads: int) -> "EngineWorker":
        """Start a process; the memory of the model's weights is shared with it.

        Raises:
            ValueError: when the model cannot be sent, or does not fit the memory that processes share.
        """
        context = torch.multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, config, model, policy_version, threads)
        process = context.Process(target=serve, args=arguments, name="bough-engine", daemon=True)
        try:
            process.start()
        except Exception as error:  # pickling fails in many ways
            ours.close()
            why = f"{type(error).__name__}: {error}"
            raise ValueError(
                f"Local.processes: got a model that cannot be sent to another process ({why}); need one that can be "
                "pickled, and room for its weights in the memory that processes share (/dev/shm; in a container "
                "--shm-size); or set processes=0"
            ) from error
        finally:
            theirs.close()
        return EngineWorker(process=process, connection=ours)

    def greet(self) -> None:
        """Wait until the process is ready.

        Raises:
            ValueError: when it cannot build an engine.
            RuntimeError: when it died.
        """
        try:
            wrong: str | None = self.connection.recv()
        except (EOFError, OSError):
            raise RuntimeError(
                f"an engine process died as it started (exit status {self.end()}); its output is above; a script "
                "that makes one must do so below if __name__ == '__main__'"
            ) from None
        if wrong is not None:
            raise ValueError(wrong)
        self.ready = True

    def send(self, message: Message) -> None:
        """Send a message to the process.

        Raises:
            OSError: when the process has ended.
        """
        self.connection.send(message)

    def receive(self) -> Report | None:
        """Return its next report; None for the message that it is ready.

        Raises:
            EOFError, OSError: when the process has ended.
        """
        said: Report | str | None = self.connection.recv()
        if isinstance(said, str):
            self.wrong = said
            raise EOFError(said)
        self.ready = True
        if said is not None:
            self.stats, self.busy_s = said.stats, said.busy_s
        return said

    def end(self) -> int | None:
        """End the process; returns its exit status, minus the signal where one killed it."""
        with suppress(OSError):
            self.connection.send("end")
        self.process.join(END_S if self.ready else 0)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()
        return self.process.exitcode
