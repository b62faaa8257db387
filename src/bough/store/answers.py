"""The answers of models to the questions of a run, by content."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bough.store.atomic import explain_full_disk, explain_unwritable


class Answers:
    """Answers by the hash of their question, in a file of one JSON object a line.

    Each answer is written as it arrives, in one call, so that a killed process leaves at most one line incomplete. It
    is removed when the file is opened again. The index holds the place of each line; texts stay on disk.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, which is created with the first answer."""
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        if path.is_file():
            self._read()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The answer with this key; None without one."""
        if key not in self._places:
            return None
        begin, end = self._places[key]
        with self._path.open("rb") as file:
            file.seek(begin)
            return json.loads(file.read(end - begin))

    def put(self, key: str, answer: Mapping[str, object]) -> None:
        """Write an answer.

        Raises:
            StoreError: when the disk is full or the file can't be written.
        """
        line = (json.dumps({"key": key, **answer}) + "\n").encode()
        with (
            explain_unwritable(self._path),
            explain_full_disk(self._path, needed_bytes=len(line)),
            self._path.open("ab", buffering=0) as file,
        ):
            file.write(line)
        self._places[key] = (self._end, self._end + len(line))
        self._end += len(line)

    def _read(self) -> None:
        with self._path.open("rb+") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._places[str(json.loads(line)["key"])] = (self._end, self._end + len(line))
                self._end += len(line)
            file.truncate(self._end)
