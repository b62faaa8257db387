"""The loggers of a run, and what each has written, in the run's directory."""

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from bough.config.config import dump
from bough.config.flat import flat_settings
from bough.loggers.logger import EndState, LoggedRun, Logger
from bough.loggers.logger_thread import LoggerThread, Row
from bough.store import RunDirectory, read_metrics, write_json
from bough.store.atomic import read_stored

FLUSH_S = 60.0
"""Seconds at the end of a run in which loggers write what waits."""
RECORDS = "loggers"
"""The key of the records in loggers.json."""


class RunLoggers:
    """Gives the rows of a run to its loggers; a context manager whose end flushes them.

    `loggers.json` in the run's directory has the settings of each logger, the id of its run, and its newest step, so
    that a resumed run goes on there. Settings that are not in it are a new logger, which gets all rows.
    """

    def __init__(
        self, name: str, run: object, loggers: Sequence[Logger], directory: RunDirectory, notify: Callable[[str], None]
    ) -> None:
        """Prepare.

        Args:
            name: The run's name.
            run: The run, for its settings.
            loggers: Its loggers.
            directory: Its directory.
            notify: Shows a line to the user. It is called by `log` and at the end, so a line may be late by a step.
        """
        self._name, self._run, self._loggers = name, run, loggers
        self._directory, self._notify = directory, notify
        self._threads, self._records = list[LoggerThread](), list[dict[str, Any]]()
        self._lock, self._lines = threading.Lock(), queue.SimpleQueue[str]()

    def __enter__(self) -> "RunLoggers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        state: EndState = "finished" if kind is None else "stopped" if interrupted else "failed"
        deadline_s = time.monotonic() + FLUSH_S
        for thread in self._threads:
            thread.finish(state, deadline_s)
        self._show()

    def begin(self, resumed_at: int) -> None:
        """Start the loggers; `resumed_at` is the last step whose row is kept, -1 for none."""
        if not self._loggers:
            return
        settings = {name: value for name, value in flat_settings(self._run).items() if value is not None}
        # The records of loggers that a resumed run leaves out stay, for a later one that has them again.
        self._records = _read(self._directory)
        matched = _matched(self._loggers, self._records)
        self._records.extend(record for record in matched if not any(record is each for each in self._records))
        for logger, record in zip(self._loggers, matched, strict=True):
            folder = self._directory.loggers / record["name"]
            folder.mkdir(parents=True, exist_ok=True)
            about = LoggedRun(
                name=self._name,
                folder=folder,
                settings=settings,
                id=record["id"],
                last_step=record["step"],
                resumed_at=resumed_at,
            )
            thread = LoggerThread(
                record["name"], logger, about, self._stored, self._recorder(record), notify=self._lines.put
            )
            self._threads.append(thread)

    def log(self, step: int, values: Mapping[str, float | str], *, more: bool = False) -> None:
        """Hand the numbers of a step to all loggers; with `more` they are further values of the last row."""
        if self._threads:
            row = Row(step=step, values=_numbers(values), more=more)
            for thread in self._threads:
                thread.log(row)
            self._show()

    def _show(self) -> None:
        """Show the lines of the threads."""
        while not self._lines.empty():
            self._notify(self._lines.get())

    def _stored(self, after: int) -> list[Row]:
        """The rows of `metrics.jsonl` after a step."""
        path = self._directory.metrics
        rows = read_metrics(path) if path.exists() else []
        numbered = ((int(row["step"]), {name: row[name] for name in row if name != "step"}) for row in rows)
        return [Row(step=step, values=_numbers(values)) for step, values in numbered if step > after]

    def _recorder(self, record: dict[str, Any]) -> Callable[[str, int], None]:
        """Stores the id and the newest step of a logger."""

        def written(run: str, step: int) -> None:
            with self._lock:
                record.update(id=run, step=step)
                write_json(self._directory.logger_records, {RECORDS: self._records})

        return written


def _read(directory: RunDirectory) -> list[dict[str, Any]]:
    path = directory.logger_records
    return cast("list[dict[str, Any]]", read_stored(path)[RECORDS]) if path.exists() else []


def _matched(loggers: Sequence[Logger], before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The record of each logger: the one with its settings, or a new one, whose name no other has."""
    left, names = [*before], {str(record["name"]) for record in before}
    records = list[dict[str, Any]]()
    for logger in loggers:
        settings, kind = dump(logger), type(logger).__name__
        record = next((each for each in left if each["settings"] == settings), None)
        if record is None:
            free = next(
                name for name in (kind, *(f"{kind}-{n}" for n in range(2, len(names) + 3))) if name not in names
            )
            record = dict[str, Any](name=free, settings=settings, id="", step=-1)
        else:
            left.remove(record)
        names.add(str(record["name"]))
        records.append(record)
    return records


def _numbers(values: Mapping[str, float | str]) -> dict[str, float]:
    """The numbers of a row; nan for each that is not finite, as in `metrics.jsonl`."""
    numbers = {name: float(value) for name, value in values.items() if not isinstance(value, str)}
    return {name: value if math.isfinite(value) else math.nan for name, value in numbers.items()}
