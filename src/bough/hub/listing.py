"""Names and sizes of the files of a commit, kept on disk: whether a cached copy is whole is known without the hub."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, cast

from bough.hub.repo import HubRepo

Listing: TypeAlias = Mapping[str, int]
"""The sizes of files in bytes, by name."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/bough`, by default `~/.cache/bough`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "bough"


def is_inside(name: str) -> bool:
    """Whether a listed name is that of a file in its folder, on any system: a hub may be hostile."""
    parts = name.split("/")
    return not ({"", ".", ".."} & {*parts} or "\\" in name or ":" in name or "\0" in name)


def read_listing(repo: HubRepo, commit: str) -> Listing | None:
    """The files of a commit; None where they were never asked for."""
    try:
        found: object = json.loads(_file(repo, commit).read_bytes())
    except (OSError, ValueError):
        return None
    return cast("Listing", found) if isinstance(found, dict) else None


def write_listing(repo: HubRepo, commit: str, listing: Listing) -> None:
    """Keep the files of a commit. A cache that cannot be written costs a question to the hub, and no more."""
    file = _file(repo, commit)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(dict(listing)))
        scratch.replace(file)


def _file(repo: HubRepo, commit: str) -> Path:
    return cache_folder() / "hub" / f"{repo.kind}s--{repo.name.replace('/', '--')}" / f"{commit}.json"
