"""Processes of their own for commands and scripts of tests, without an import of PyTorch for each, which takes seconds.

They are forks of a process that has imported what a run needs, and has used none of it.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import torch
from tests.talk import ENVIRONMENT, Said

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["pytest", "bough.cli", "bough.train.runtime", "bough.recipes", "bough.serve"])

PATIENCE_S = 280.0
"""Longest wait for a process."""


class Fork:
    """A process, in a session of its own, that calls a function. It is killed at the end of `with`."""

    def __init__(
        self,
        function: Callable[..., object],
        *arguments: object,
        folder: Path | None = None,
        environment: Mapping[str, str] = ENVIRONMENT,
        speaks: bool = False,
    ) -> None:
        """Start it.

        Args:
            function: A function of a module.
            arguments: What it is called with.
            folder: Its working directory, if not this one.
            environment: Its environment.
            speaks: Whether `say` writes to its standard input, which is empty otherwise.
        """
        self._files = TemporaryDirectory()
        self._heard = 0
        for name in ("out", "err"):
            self._file(name).touch()
        reads, writes = _processes.Pipe(duplex=False)
        self._input = os.fdopen(os.dup(writes.fileno()), "w", encoding="utf-8")
        writes.close()
        if not speaks:
            self._input.close()
        ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        place = (self._files.name, reads, folder or Path.cwd(), dict(environment), ignored)
        self._process = _processes.Process(target=_call, args=(*place, function, arguments))
        self._process.start()
        reads.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def _file(self, name: str) -> Path:
        return Path(self._files.name) / name

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    @property
    def printed(self) -> str:
        """All that it printed so far."""
        return self._file("out").read_text() + self._file("err").read_text()

    def say(self, text: str, *, last: bool = False) -> None:
        """Write to its standard input, and close it after the last."""
        self._input.write(text)
        self._input.flush()
        if last:
            self._input.close()

    def line(self) -> str:
        """The next line that it prints."""
        patience = time.monotonic() + PATIENCE_S
        while True:
            alive, lines = self.alive, self._file("out").read_text().splitlines(keepends=True)
            if len(lines) > self._heard and lines[self._heard].endswith("\n"):
                self._heard += 1
                return lines[self._heard - 1]
            assert alive, self._file("err").read_text()
            assert time.monotonic() < patience
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self) -> Said:
        """How it ended, and all that it printed; the status is negative when a signal killed it."""
        self._process.join(PATIENCE_S)
        status = self._process.exitcode
        if status is None:
            self._process.kill()
            raise TimeoutError(self.printed)
        return Said(status=status, out=self._file("out").read_text(), err=self._file("err").read_text())


def command(*arguments: object, folder: Path | None = None, speaks: bool = False) -> Fork:
    """A `bough` command."""
    return Fork(run_command, list(map(str, arguments)), folder=folder, environment=ENVIRONMENT, speaks=speaks)


def run_command(arguments: list[str]) -> None:
    """A `bough` command in this process."""
    from bough.cli import main

    sys.argv = ["bough", *arguments]
    main()


def script(code: str, folder: Path | None = None) -> Fork:
    """A script given as text."""
    return Fork(_run_script, code, folder=folder)


def _run_script(code: str) -> None:
    file = Path(os.environ["BOUGH_FORK"]) / "script.py"
    file.write_text(code)
    runpy.run_path(str(file), run_name="__main__")


def _call(
    files: str,
    reads: Connection,
    folder: Path,
    environment: dict[str, str],
    ignores_interrupts: bool,
    function: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    """In the process: become like one that was started, then call."""
    os.setsid()
    os.dup2(reads.fileno(), 0)
    reads.close()
    for number, name in ((1, "out"), (2, "err")):
        opened = os.open(Path(files) / name, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 -- it stays open as long as the process
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignores_interrupts else signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment, BOUGH_FORK=files)
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", torch.get_num_threads())))
    os.chdir(folder)
    function(*arguments)
