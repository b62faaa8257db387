"""Metrics on disk: one line a step."""

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias, cast

from bough.store.atomic import StoreError, append_bytes, stored_object, write_bytes
from bough.usercode.json_file import json_text

Value: TypeAlias = int | float | str
Plain = int | float | str | None


class Metrics:
    """Appends one line a step to a JSONL file; each line is on disk before the call returns.

        {"step": 12, "phase": "rl", "train/success": 0.4375, "reward/mean": 0.41}

    Steps ascend over the whole run, through all its phases. An incomplete line of a killed process is dropped.

    Args:
        path: The file; an existing one is continued.

    Raises:
        StoreError: when a line is no JSON object.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._step = self._keep(None)

    @property
    def step(self) -> int:
        """The step of the last line; -1 without lines."""
        return self._step

    def missing(self, last: int) -> str:
        """The steps from 1 to `last` without a line, as "3, 7 to 9"; "" where none is missing."""
        rows = _rows(self._path, self._path.read_bytes()) if self._path.exists() else []
        known = [0, *sorted({cast("int", row["step"]) for _, row in rows} - {0}), last + 1]
        gaps = [(one + 1, other - 1) for one, other in pairwise(known) if other - one > 1]
        return ", ".join(str(begin) if begin == end else f"{begin} to {end}" for begin, end in gaps)

    def resume_at(self, step: int) -> None:
        """Drop all values after `step`, because the run continues from there."""
        self._step = self._keep(step)

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Append the line of a step.

        Args:
            step: Greater than the step of every earlier line.
            values: Numbers and short texts by name. A number that is not finite is written as null.

        Raises:
            ValueError: when the step is not greater than the last one, or a value is called "step".
            StoreError: when the disk is full; earlier lines are intact.
        """
        if step <= self._step or "step" in values:
            raise ValueError(
                f"Metrics.write: got step {step} with values {sorted(values)} after step {self._step}; need ascending "
                "steps, one line each, and no value called 'step'"
            )
        append_bytes(self._path, (json_text({"step": step, **_plain(values)}) + "\n").encode())
        self._step = step

    def amend(self, values: Mapping[str, Value]) -> None:
        """Add values to the last line; the file is replaced in one write.

        Raises:
            StoreError: when the disk is full; the file is as it was before.
        """
        *before, (_, row) = _rows(self._path, self._path.read_bytes())
        lines = [*(line for line, _ in before), json_text({**row, **_plain(values)}).encode()]
        write_bytes(self._path, b"".join(line + b"\n" for line in lines))

    def _keep(self, last: int | None) -> int:
        """Rewrite the file with the complete lines up to step `last`; returns the last step in it, -1 for none."""
        if not self._path.exists():
            return -1
        before = self._path.read_bytes()
        rows = _rows(self._path, before)
        kept = [(line, row) for line, row in rows if last is None or cast("int", row["step"]) <= last]
        after = b"".join(line + b"\n" for line, _ in kept)
        if after != before:
            write_bytes(self._path, after)
        return cast("int", kept[-1][1]["step"]) if kept else -1


def read_metrics(path: Path) -> list[dict[str, Value]]:
    """The lines of `Metrics`, in order; null becomes nan. An incomplete last line is skipped.

    Raises:
        StoreError: when a line is no JSON object with a step; names it.
    """
    return [
        {name: math.nan if value is None else cast("Value", value) for name, value in row.items()}
        for _, row in _rows(path, path.read_bytes())
    ]


def _plain(values: Mapping[str, Value]) -> dict[str, float | str]:
    """The values for JSON."""
    return {name: value if isinstance(value, str) else float(value) for name, value in values.items()}


def _rows(path: Path, data: bytes) -> list[tuple[bytes, dict[str, object]]]:
    rows: list[tuple[bytes, dict[str, object]]] = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            row = stored_object(line)
        except ValueError:
            row = dict[str, object]()
        if not isinstance(row.get("step"), int) or not all(isinstance(each, Plain) for each in row.values()):
            raise StoreError(
                f"{path}, line {number}: got {line[:80]!r}; need a JSON object of numbers and texts with a step; "
                "remove the line"
            )
        rows.append((line, row))
    return rows
