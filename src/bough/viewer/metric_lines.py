"""The rows of a growing `metrics.jsonl`, of which only what is new is read."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bough.store import StoreError
from bough.store.atomic import stored_object


@dataclass(slots=True)
class MetricLines:
    """The rows of a file of metrics.

    A run appends lines, adds values to the last one, and drops the last ones when it is resumed: from the last known
    line on the file is read again, and all of it where that line has another step.

    Attributes:
        file: The file; it may not exist yet.
    """

    file: Path
    _rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], init=False)
    _last: int = field(default=0, init=False)
    """Where the last row begins."""
    _stamp: tuple[int, int] = field(default=(0, 0), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def read(self) -> list[dict[str, Any]]:
        """The rows, one a step; an incomplete last line is left out.

        Raises:
            StoreError: when a line is no JSON object with a step; names it.
        """
        with self._lock:
            try:
                stat = self.file.stat()
            except FileNotFoundError:
                return []
            if (stamp := (stat.st_mtime_ns, stat.st_size)) != self._stamp:
                self._read_on()
                self._stamp = stamp
            return [*self._rows]

    def _read_on(self) -> None:
        with self.file.open("rb") as file:
            file.seek(self._last)
            lines = [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        rows = [_row(line) for line in lines]
        known = self._rows.pop() if self._rows else None
        if known is not None and (not rows or rows[0].get("step") != known["step"]):
            self._rows, self._last = [], 0
            self._read_on()
            return
        for at, (line, row) in enumerate(zip(lines, rows, strict=True)):
            if not row:
                where = len(self._rows) + 1
                self._rows, self._last = [], 0
                raise StoreError(f"{self.file}, line {where}: got a damaged line; need a JSON object with a step")
            self._rows.append(row)
            self._last += len(line) if at + 1 < len(lines) else 0


def _row(line: bytes) -> dict[str, Any]:
    """The row of a line; empty for a damaged one."""
    try:
        row = stored_object(line)
    except ValueError:
        return {}
    step = row.get("step")
    return row if isinstance(step, int) and not isinstance(step, bool) else {}
