"""Records of steps on disk, some or none a step: alarms, faults."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bough.store.atomic import StoreError, append_bytes, stored_object, write_bytes
from bough.usercode.json_file import json_text


class StepLines:
    """A JSONL file of objects with a step each. A damaged line, such as the last one of a killed process, is skipped.

    Args:
        path: The file; made with the first record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, step: int, record: Mapping[str, object]) -> None:
        """Append a record; it is on disk before the call returns.

        Raises:
            StoreError: when the disk is full.
        """
        append_bytes(self._path, (json_text({"step": step, **record}) + "\n").encode())

    def read(self) -> list[dict[str, Any]]:
        """The records, in the order in which they were written."""
        if not self._path.is_file():
            return []
        found = map(_record, self._path.read_bytes().splitlines())
        return [each for each in found if each is not None]

    def drop_after(self, step: int) -> None:
        """Drop the records of later steps, because the run continues from there."""
        if self._path.is_file():
            kept = [each for each in self.read() if each["step"] <= step]
            write_bytes(self._path, b"".join((json_text(each) + "\n").encode() for each in kept))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = stored_object(line)
    except (ValueError, StoreError):
        return None
    step = found.get("step")
    return found if isinstance(step, int) and not isinstance(step, bool) else None
