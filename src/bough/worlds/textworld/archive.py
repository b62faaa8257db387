"""Archives of games: a file is written only after its hash is checked."""

import hashlib
import io
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

SUFFIXES = (".z8", ".json")
"""The files of a game: the compiled story, and TextWorld's description of its world."""

MOST_BYTES = 1 << 29
"""The largest archive after decompression; 100 games are 40 MB."""


def unpack(archive: Path, folder: Path, hashes: Mapping[str, str]) -> None:
    """Write the games of an archive to a folder, which other processes see complete or not at all.

    Files are written under the games' own names, whatever the names of directories in the archive are.

    Args:
        archive: A `.tar.xz` file.
        folder: The folder, which does not exist.
        hashes: The SHA-256 of both files of each game by its name; other files of the archive are left out.

    Raises:
        ValueError: when the archive is damaged or too large, or a game is missing or has another hash.
        OSError: when it cannot be read, or the folder cannot be written.
    """
    games = dict(_games(archive, hashes))
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for name, files in games.items():
            for suffix, data in zip(SUFFIXES, files, strict=True):
                (scratch / f"{name}{suffix}").write_bytes(data)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def game_hash(files: tuple[bytes, ...]) -> str:
    """SHA-256 of both files of a game, in hexadecimal digits."""
    return hashlib.sha256(b"".join(files)).hexdigest()


def _games(archive: Path, hashes: Mapping[str, str]) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """The files of each game, with the right hash."""
    try:
        found = _files(archive)
    except (tarfile.TarError, lzma.LZMAError, EOFError, RecursionError) as error:
        raise ValueError(f"TextWorld: got a damaged archive, {archive} ({error}); restore the pack") from error
    for name, known in hashes.items():
        files = tuple(found.get(f"{name}{suffix}", b"") for suffix in SUFFIXES)
        if game_hash(files) != known:
            raise ValueError(
                f"TextWorld: got a damaged archive, {archive}: the files of game {name} are missing or have SHA-256 "
                f"{game_hash(files)}, not {known}; restore the pack"
            )
        yield name, files


def _files(archive: Path) -> dict[str, bytes]:
    with lzma.open(archive) as packed:
        data = packed.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"TextWorld: got an archive of more than {MOST_BYTES >> 20} MiB, {archive}; need a smaller one"
        )
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                found[Path(member.name).name] = file.read()
    return found
