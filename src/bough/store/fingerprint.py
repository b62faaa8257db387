"""Fingerprints of data files and folders, at a bounded cost."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from bough.units import MIB

WHOLE_BYTES = 256 * MIB
"""Size up to which a file is read whole."""

PARTS = 256
"""Number of evenly spaced parts of 1 MiB that are read of a larger file, the first and the last one included."""

MAX_FILES = 10_000
"""Number of files of a folder, in the order of their names, of which the contents are read."""


def fingerprint(path: Path) -> str:
    """A text that changes when a file or a folder changes.

    Of a file its size and contents; of one above 256 MiB its size and 256 evenly spaced parts of 1 MiB. Of a folder the
    names, sizes and contents of its files, at any depth; beyond 10,000 files names and sizes only. Of a run's directory
    `config.json` and the checkpoints, since the rest changes when the run is read.

    Raises:
        OSError: when there is no such file, or it cannot be read.
    """
    if not path.is_dir():
        return f"{path.stat().st_size:,} bytes, {_contents(path)}"
    files = sorted(_files(path))
    found = hashlib.blake2b(digest_size=8)
    size = 0
    for number, file in enumerate(files):
        bytes_, name = file.stat().st_size, file.relative_to(path).as_posix()
        size += bytes_
        content = _contents(file) if number < MAX_FILES else ""
        found.update(f"{name}\0{bytes_}\0{content}\0".encode("utf-8", "surrogateescape"))
    return f"{len(files):,} files of {size:,} bytes, {found.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    """The regular files of a folder."""
    if (folder / "config.json").is_file() and (folder / "checkpoints").is_dir():
        yield folder / "config.json"
        folder = folder / "checkpoints"
    for place, _, names in os.walk(folder):
        yield from (file for name in names if (file := Path(place, name)).is_file())


def _contents(path: Path) -> str:
    """The checksum of a file, of its parts if it is large."""
    found, size = hashlib.blake2b(digest_size=8), path.stat().st_size
    with path.open("rb") as file:
        if size <= WHOLE_BYTES:
            for part in iter(lambda: file.read(MIB), b""):
                found.update(part)
        else:
            for number in range(PARTS):
                file.seek((size - MIB) * number // (PARTS - 1))
                found.update(file.read(MIB))
    return found.hexdigest()
