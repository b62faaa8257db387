"""What the settings of a run mean for its pages."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bough.store import StoreError

MOST_ITEMS, MOST_CHARACTERS = 100, 10_000
"""Items of a list and characters of a text that a page shows; the file has them whole."""


def settings_rows(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings as rows: the field's path, and its value on one line; long values are cut, with a checksum."""
    rows: dict[str, str] = {}
    for field_name, value in settings.items():
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            if "piece" in inner:
                rows[f"{prefix}{field_name}"] = piece_name(inner)
            rows |= settings_rows(
                {key: each for key, each in inner.items() if key != "piece"}, f"{prefix}{field_name}."
            )
        elif not (prefix == "" and field_name == "piece"):
            rows[f"{prefix}{field_name}"] = _shown(value)
    return rows


def _shown(value: object) -> str:
    """A value as JSON; the begin of a long one, with its length and a checksum, which differs where two of them do."""
    whole = json.dumps(value)
    if isinstance(value, list) and len(cast("Sequence[object]", value)) > MOST_ITEMS:
        items = cast("Sequence[object]", value)
        part, length = json.dumps(items[:MOST_ITEMS])[:MOST_CHARACTERS], f"{len(items):,} items"
    elif len(whole) > MOST_CHARACTERS:
        part, length = whole[:MOST_CHARACTERS], f"{len(whole):,} characters"
    else:
        return whole
    return f"{part} ... (cut: {length}, checksum {hashlib.blake2b(whole.encode(), digest_size=4).hexdigest()})"


def piece_name(value: Mapping[str, Any] | None) -> str:
    """The name of a piece in a `config.json`."""
    return "none" if not value else str(value.get("piece", "")).rpartition(":")[2]


def setting(file: Path, settings: Mapping[str, Any], *fields: str) -> Any:
    """A setting, by the names of its fields from outside in.

    Args:
        file: The file of the settings, for the error.
        settings: The settings.
        fields: The names.

    Raises:
        StoreError: when there is no such field.
    """
    found: Any = settings
    for name in fields:
        if not isinstance(found, dict) or name not in found:
            raise StoreError(f"{file}: got no {'.'.join(fields)}; need the file of a run")
        found = cast("dict[str, Any]", found)[name]
    return found


def warmup_epochs(settings: Mapping[str, Any]) -> int:
    """The epochs of the warm-up, with those after it; 0 without one."""
    epochs, part = 0, cast("Mapping[str, Any] | None", settings["world"]["warmup"])
    while part and (part["demonstrations"] or part["file"] is not None):
        epochs, part = epochs + int(part["epochs"]), part["then"]
    return epochs


def notes(settings: Mapping[str, Any]) -> list[str]:
    """What a reader of the results has to know: tasks that the oracle begins."""
    world = cast("Mapping[str, Any]", settings["world"])
    sources = {"tasks": world["tasks"], "evaluation.tasks": world["evaluation"]["tasks"]}
    begun = {field: source["actions_left"] for field, source in sources.items() if source["actions_left"] is not None}
    return [f"The oracle begins tasks: {field}.actions_left={left}" for field, left in begun.items()]
