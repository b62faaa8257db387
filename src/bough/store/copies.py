"""Copies of a run's checkpoints in an object store, or in any other file system of fsspec."""

import importlib
import os
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bough.launch import in_background
from bough.store.atomic import StoreError
from bough.version import install

CHECKPOINTS = "checkpoints"

NOT_COPIED = (CHECKPOINTS, "growing", "loggers", "logs", "run.lock", "traces.jsonl", "trees")
"""What `resume` does not need, and checkpoints, which are copied first."""


class Copies:
    """A folder with the newest checkpoints of a run, and what `bough resume` needs beside them.

    A thread copies, one copy at a time. The manifest of a checkpoint comes last, so a copy that was interrupted is a
    damaged checkpoint, which `resume` skips. Earlier ones are removed after it.

    Attributes:
        url: The folder.
        failures: Number of copies that failed.
    """

    def __init__(self, url: str, directory: Path) -> None:
        """Find the file system.

        Args:
            url: A folder, as of fsspec: "s3://bucket/runs"; the copy is in a folder of it named as the run's.
            directory: The run's folder.

        Raises:
            ImportError: without the extra `copies`.
            StoreError: when fsspec has no such file system, or it refuses its settings.
        """
        try:
            core: Any = importlib.import_module("fsspec.core")
        except ImportError as error:
            raise ImportError(f"copy_to: got no package fsspec; need the extra: {install('copies')}") from error
        try:
            self._store, home = core.url_to_fs(url)
        except Exception as error:  # each file system has classes of its own
            raise StoreError(
                f"checkpointing.copy_to: got {url!r} ({error}); need a URL of fsspec, such as s3://bucket/runs with "
                "the package s3fs; correct it, or install the package of its file system"
            ) from error
        self.url, self.failures = url, 0
        self._home, self._directory = f"{str(home).rstrip('/')}/{directory.name}", directory
        self._copied = dict[str, tuple[int, int]]()
        self._present: Future[None] | None = None

    def start(self) -> None:
        """Begin a copy of the run as it is now; its checkpoints must stay until `finish`."""
        self._present = in_background(self._copy, "bough-copies")

    def finish(self) -> str:
        """Wait for the present copy; returns why it failed, "" otherwise."""
        if self._present is None:
            return ""
        error, self._present = self._present.exception(), None
        if error is None:
            return ""
        self.failures += 1
        return (
            f"the copy to {self.url} failed ({type(error).__name__}: {error}); the run goes on, and copies all again "
            "with its next checkpoint"
        )

    def _copy(self) -> None:
        for file in self._files():
            name, about = file.relative_to(self._directory).as_posix(), file.stat()
            version = (about.st_mtime_ns, about.st_size)
            if self._copied.get(name) != version:
                target = f"{self._home}/{name}"
                self._store.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._store.put_file(str(file), target)
                self._copied[name] = version
        kept = {path.name for path in (self._directory / CHECKPOINTS).iterdir()}
        self._store.invalidate_cache()
        for path in self._store.ls(f"{self._home}/{CHECKPOINTS}", detail=False):
            if path.rstrip("/").rpartition("/")[2] not in kept:
                self._store.rm(path, recursive=True)

    def _files(self) -> Iterator[Path]:
        """The files of a copy in their order; a file under its last name only."""
        for folder in sorted((self._directory / CHECKPOINTS).iterdir()):
            yield from sorted(folder.iterdir(), key=lambda file: (file.name == "manifest.json", file.name))
        for path in sorted(self._directory.iterdir()):
            if path.name not in NOT_COPIED and ".tmp-" not in path.name:
                yield from sorted(file for file in [path, *path.rglob("*")] if os.path.isfile(file))
