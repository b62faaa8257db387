"""The thread of a logger: rows wait for it in a bounded queue, and what it misses it reads from `metrics.jsonl`."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bough.loggers.logger import EndState, LoggedRun, Logger, LogWriter

QUEUE_ROWS = 1000
"""Rows that wait at most; then the thread reads the rest from the file."""
RETRY_S = 30.0
"""Seconds after an error until a row is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Numbers of a step.

    Attributes:
        step: The step.
        values: By name.
        more: Whether they are further values of the row of this step.
    """

    step: int
    values: Mapping[str, float]
    more: bool = False


class LoggerThread:
    """Runs a writer beside the run. No call waits for it but `end`, and no error of the writer leaves it."""

    def __init__(
        self,
        name: str,
        logger: Logger,
        run: LoggedRun,
        stored: Callable[[int], Sequence[Row]],
        written: Callable[[str, int], None],
        *,
        notify: Callable[[str], None],
    ) -> None:
        """Start the thread.

        Args:
            name: Of the logger, for messages.
            logger: Its settings.
            run: The run.
            stored: The stored rows after a step.
            written: Called with the writer's id and the newest step that it wrote.
            notify: Called with a line for the user.
        """
        self._name, self._logger, self._run = name, logger, run
        self._stored, self._written, self._notify = stored, written, notify
        self._queue = queue.Queue[Row | EndState](QUEUE_ROWS)
        self._writer: LogWriter | None = None
        self._last, self._names = -1, frozenset[str]()
        # The writer is not open yet, or rows are missing there: the next thing to do is to read them from the file.
        self._behind, self._reported, self._retry_at_s = True, False, 0.0
        self._thread = threading.Thread(target=self._work, name=f"bough-logger-{name}", daemon=True)
        self._thread.start()

    def log(self, row: Row) -> None:
        """Hand over a row; when too many wait, it is read from the file later."""
        try:
            self._queue.put_nowait(row)
        except queue.Full:
            self._behind = True

    def finish(self, state: EndState, deadline_s: float) -> None:
        """Wait until all rows are written and the run is closed there, up to a deadline on the monotonic clock."""
        try:
            self._queue.put(state, timeout=max(0.0, deadline_s - time.monotonic()))
        except queue.Full:
            pass
        else:
            self._thread.join(max(0.0, deadline_s - time.monotonic()))
        if self._thread.is_alive() or self._behind:
            last = f"the rows after step {self._last}" if self._last >= 0 else "all rows"
            self._notify(
                f"warning: the logger {self._name} lacks {last} at the end of the run; metrics.jsonl has them, and "
                "`bough resume` writes them when the run goes on"
            )

    def _work(self) -> None:
        self._try(self._catch_up)
        while isinstance(row := self._queue.get(), Row):
            if self._behind and time.monotonic() >= self._retry_at_s:
                self._try(self._catch_up)
            if not self._behind:
                self._try(partial(self._write, row))
        if self._behind:
            self._try(self._catch_up)
        if self._writer is not None:
            self._try(partial(self._writer.end, row))

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # of a package or of the user's code, in a thread of its own
            self._behind, self._retry_at_s = True, time.monotonic() + RETRY_S
            if not self._reported:
                self._reported = True
                after = f" after step {self._last}" if self._last >= 0 else ""
                self._notify(
                    f"warning: the logger {self._name} failed{after} ({type(error).__name__}: {error}); the run goes "
                    "on, later rows are tried again, and metrics.jsonl has every row"
                )

    def _catch_up(self) -> None:
        """Open the run at its place if it is not open yet, and write the stored rows that it lacks."""
        if self._writer is None:
            self._writer = self._logger.start(self._run)
            self._last = self._writer.last_step
            self._written(self._writer.id, self._last)
            if self._writer.place:
                self._notify(f"{self._name}: {self._writer.place}")
        # Before the file is read: rows that come meanwhile may find the queue full again.
        self._behind = False
        for row in self._stored(self._last):
            self._write(row)

    def _write(self, row: Row) -> None:
        """Write a row, or further values of the last one, unless its place has them."""
        if self._writer is None or row.step < self._last or (row.step == self._last and not row.more):
            return
        known = self._names if row.step == self._last else frozenset[str]()
        values = {name: value for name, value in row.values.items() if name not in known}
        if values or not row.more:
            self._writer.log(row.step, values)
            self._last, self._names = row.step, known | values.keys()
            self._written(self._writer.id, row.step)
