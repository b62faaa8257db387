"""A user's loggers, in a file of their own."""

import json
import os
import signal
import time
from collections.abc import Mapping

from bough.loggers import EndState, LoggedRun, LogWriter
from bough.piece import piece


@piece
class Lines:
    """Writes a line of JSON a step.

    Attributes:
        kill_at: The step at which its process is killed, once; 0 for none.
    """

    kill_at: int = 0

    def start(self, run: LoggedRun) -> LogWriter:
        """Open the file."""
        return _Writer(self.kill_at, run)


class _Writer(LogWriter):
    def __init__(self, kill_at: int, run: LoggedRun) -> None:
        super().__init__(run)
        self.id = f"{run.id}+{run.name}"
        self.place = "lines"
        self._kill_at, self._file = kill_at, run.folder / "lines.jsonl"
        if self._file.is_file():
            # A process may be killed between a row and the record of it.
            self.last_step = max(json.loads(line)["step"] for line in self._file.read_text().splitlines())

    def log(self, step: int, values: Mapping[str, float]) -> None:
        killed = self.run.folder / "killed"
        if step == self._kill_at and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with self._file.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    def end(self, state: EndState) -> None:
        """Leave the state."""
        (self.run.folder / "state").write_text(state)


@piece
class Failing:
    """Fails at its start, or at each row.

    Attributes:
        at_start: Whether it fails at its start.
    """

    at_start: bool = False

    def start(self, run: LoggedRun) -> LogWriter:
        """Fail, or open."""
        if self.at_start:
            raise ConnectionError("no route to the tracker")
        return _Failing(run)


class _Failing(LogWriter):
    def log(self, step: int, values: Mapping[str, float]) -> None:
        raise OSError(f"no space for {len(values)} values of step {step}")


@piece
class Hanging:
    """Never ends a row."""

    def start(self, run: LoggedRun) -> LogWriter:
        """Open."""
        return _Hanging(run)


class _Hanging(LogWriter):
    def log(self, step: int, values: Mapping[str, float]) -> None:
        time.sleep(10_000 + step + len(values))
