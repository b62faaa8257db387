"""Reads a user's text files in UTF-8, with or without a byte order mark."""

from collections.abc import Iterator
from pathlib import Path


def read_text(file: Path) -> str:
    """The text of a file.

    Raises:
        OSError: when the file cannot be read.
        ValueError: when it is no UTF-8; names the file.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(file, error) from error


def read_lines(file: Path) -> Iterator[str]:
    r"""The lines of a file, as in JSON Lines: separators other than "\n" and "\r" are text.

    Raises:
        OSError: when the file cannot be read.
        ValueError: when it is no UTF-8; names the file.
    """
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for line in lines:
                yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise _no_text(file, error) from error


def _no_text(file: Path, error: UnicodeDecodeError) -> ValueError:
    return ValueError(f"{file}: got no UTF-8 ({error.reason} {error.object[error.start]:#04x}); need text in UTF-8")
