"""Reads text files of others in UTF-8, with or without a byte order mark."""

import codecs
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
        raise _no_text(str(file), error) from error


def read_lines(file: Path) -> Iterator[tuple[str, str]]:
    r"""The lines of a file that are not empty, each after its place, "FILE, line 3".

    Lines end at "\n", as in JSON Lines; other separators are text.

    Raises:
        OSError: when the file cannot be read.
        ValueError: when a line is no UTF-8; names it.
    """
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{file}, line {number}"
            try:
                text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise _no_text(where, error) from error
            if text.strip():
                yield where, text


def _no_text(where: str, error: UnicodeDecodeError) -> ValueError:
    return ValueError(f"{where}: got no UTF-8 ({error.reason} {error.object[error.start]:#04x}); need text in UTF-8")
