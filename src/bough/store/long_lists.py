"""Stores long lists of a configuration, such as rows of tasks, in files beside config.json, which stays short."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bough.store.atomic import StoreError, write_bytes
from bough.usercode.json_file import json_text

LONG_BYTES = 2**16
"""Lists whose JSON has at least this many bytes are moved."""

KEY = "list in data/"
"""The only key of the object that replaces a list; its value is the name of the file. No field has this name."""


def move_lists(value: object, folder: Path) -> Any:
    """Returns a JSON value with its long lists moved to files of a folder, each named by its checksum.

    Equal lists share a file. `restore_lists` is the inverse.

    Raises:
        StoreError: when the disk is full or a file can't be written.
    """
    if isinstance(value, Mapping):
        return {key: move_lists(each, folder) for key, each in cast("Mapping[str, object]", value).items()}
    if not isinstance(value, list | tuple):
        return value
    items = [move_lists(each, folder) for each in cast("Sequence[object]", value)]
    text = json_text(items, ascii_only=False).encode(errors="surrogatepass")
    if len(text) < LONG_BYTES:
        return items
    file = folder / f"{_checksum(text)}.json"
    folder.mkdir(exist_ok=True)
    if not file.exists():
        write_bytes(file, text)
    return {KEY: file.name}


def restore_lists(value: object, folder: Path) -> Any:
    """Returns the value before `move_lists`.

    Raises:
        StoreError: when a file is missing or was changed.
    """
    if isinstance(value, list):
        return [restore_lists(each, folder) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found = cast("dict[str, object]", value)
    if {*found} != {KEY}:
        return {key: restore_lists(each, folder) for key, each in found.items()}
    file = folder / Path(str(found[KEY])).name
    text = file.read_bytes() if file.is_file() else b""
    if _checksum(text) != file.stem:
        raise StoreError(f"{file}: got {'a file that changed' if text else 'no file'}; need it as the run wrote it")
    return restore_lists(json.loads(text), folder)


def _checksum(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
