"""Settings as flat JSON, for snapshots: `pytest FILE --snapshot-update` writes those of new and changed pieces."""

from collections.abc import Iterator, Mapping
from typing import Any

from syrupy.extensions.json import JSONSnapshotExtension

from bough.config.config import dump
from bough.train import Run


class Settings(JSONSnapshotExtension):
    """One file a case, so that a new piece adds a file and edits none."""


def settings(value: object) -> dict[str, object]:
    """The fields of a configuration by path, each on a line of its own. Pieces have the names of their classes."""
    return dict(sorted(_flat("", dump(value))))


def changes(run: Run, base: Run) -> dict[str, object]:
    """The settings of a run that differ from those of another; None for the pieces that it lacks."""
    mine, theirs = settings(run), settings(base)
    gone = {key: None for key in theirs.keys() - mine.keys() if key.endswith(".piece")}
    return dict(sorted((dict(mine.items() - theirs.items()) | gone).items()))


def _flat(path: str, value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            name = str(each).replace(":", ".").rpartition(".")[2] if key == "piece" else each
            yield from _flat(f"{path}.{key}" if path else str(key), name)
    elif isinstance(value, list):
        if not value:
            yield path, "[]"
        for i, each in enumerate(value):
            yield from _flat(f"{path}[{i}]", each)
    else:
        yield path, value
