"""The answers of models to the questions of a run, by content."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bough.store.atomic import StoreError, append_bytes, stored_object
from bough.usercode.json_file import json_text


class Answers:
    """Answers by the hash of their question, in a file of one JSON object a line.

    Each answer is on disk before `put` returns, and a killed process leaves at most the last line incomplete. It is
    removed when the file is opened again. The index holds the place of each line; texts stay on disk.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, which is created with the first answer.

        Raises:
            StoreError: when a line is no answer; names it.
        """
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
            StoreError: when the disk is full or the file can't be written; earlier answers are intact.
        """
        line = (json_text({"key": key, **answer}) + "\n").encode()
        append_bytes(self._path, line)
        self._places[key] = (self._end, self._end + len(line))
        self._end += len(line)

    def _read(self) -> None:
        with self._path.open("rb+") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                self._places[self._key(number, line)] = (self._end, self._end + len(line))
                self._end += len(line)
            file.truncate(self._end)

    def _key(self, number: int, line: bytes) -> str:
        try:
            key: object = stored_object(line).get("key")
            if not isinstance(key, str):
                raise ValueError("no key")
        except ValueError as error:
            raise StoreError(
                f"{self._path}, line {number}: got {line[:80]!r} ({error}); need an answer as the run wrote it; remove "
                "the line, and the model is asked again"
            ) from error
        return key
