"""The runs below some folders, as the viewer lists them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from bough.store import RunDirectory, StoreError
from bough.store.atomic import read_stored
from bough.store.lock import holder
from bough.viewer.health import STAGES
from bough.viewer.metric_lines import MetricLines

Row: TypeAlias = dict[str, object]


@dataclass(slots=True)
class Runs:
    """The run directories among some places: a place is one, or a folder of them.

    Attributes:
        places: The places; new runs in them are found while the viewer is open.
    """

    places: Sequence[Path]
    _lines: dict[Path, MetricLines] = field(default_factory=dict[Path, MetricLines], init=False)

    def directories(self) -> dict[str, Path]:
        """The run directories, by a name each: that of the folder, with a number where two are alike."""
        found: dict[str, Path] = {}
        for place in self.places:
            inside = [place] if (place / "config.json").is_file() else sorted(place.glob("*/"))
            for directory in inside:
                if (directory / "config.json").is_file() and directory not in found.values():
                    name, number = directory.name, 2
                    while name in found:
                        name, number = f"{directory.name}~{number}", number + 1
                    found[name] = directory
        return found

    def directory(self, name: str) -> Path:
        """The directory of a run.

        Raises:
            StoreError: when there is no such run.
        """
        found = self.directories()
        if name not in found:
            raise StoreError(f"got the run {name!r:.80}; need one of {', '.join(found) or 'none: there are no runs'}")
        return found[name]

    def rows(self) -> list[Row]:
        """A row for each run; one that can't be read has `damaged`, the reason."""
        rows: list[Row] = []
        for name, directory in self.directories().items():
            try:
                rows.append(self.row(name, directory))
            except (StoreError, OSError) as error:
                rows.append({"name": name, "path": str(directory), "damaged": str(error)})
        return rows

    def row(self, name: str, directory: Path) -> Row:
        """What the list shows of a run.

        name, path, world, policy, credit, objective, seed
        state       "training" while a process trains it, "done" with its last policy, else "stopped"
        step, phase of the last metrics
        success     held-out: [first, last], each [rate, low, high] or None
        tokens      sampled so far; seconds in all stages

        Raises:
            StoreError: when `config.json` or a line of the metrics is damaged.
        """
        lines, shown = self._lines_of(directory), _shown_settings(directory)
        held = [each for each in lines if each.get("heldout/success") is not None]
        rates = [
            [each.get(f"heldout/{part}") for part in ("success", "low", "high")] for each in (held[:1] + held[-1:])
        ]
        training = bool(holder(directory / "run.lock"))
        return {
            "name": name,
            "path": str(directory),
            **shown,
            "state": "training" if training else "done" if (directory / "final").is_dir() else "stopped",
            "step": lines[-1]["step"] if lines else 0,
            "phase": lines[-1].get("phase", "") if lines else "",
            "success": rates,
            "tokens": sum(_number(each.get("speed/sampled_tokens")) for each in lines),
            "seconds": sum(_number(each.get(f"time/{stage}_s")) for each in lines for stage in STAGES),
        }

    def metrics(self, name: str) -> list[dict[str, Any]]:
        """The rows of a run's metrics, one a step; numbers that are not finite are None.

        Raises:
            StoreError: when there is no such run, or a line is damaged.
        """
        return self._lines_of(self.directory(name))

    def _lines_of(self, directory: Path) -> list[dict[str, Any]]:
        file = directory / "metrics.jsonl"
        return self._lines.setdefault(file, MetricLines(file)).read()

    def key(self, name: str) -> str:
        """The name of a run with the time of its creation: another run in its place has another key.

        Raises:
            StoreError: when there is no such run, or its manifest is damaged.
        """
        directory = self.directory(name)
        created = str(RunDirectory.open(directory).read_manifest().get("created", ""))
        return f"{directory.name}-{created[:19].replace(':', '-')}"

    def setting(self, name: str, *fields: str) -> Any:
        """A setting of a run, by the names of its fields from outside in.

        Raises:
            StoreError: when `config.json` is damaged, or has no such field.
        """
        found: Any = self.settings(name)
        for field_name in fields:
            if not isinstance(found, dict) or field_name not in found:
                missing = ".".join(fields)
                raise StoreError(f"{self.directory(name) / 'config.json'}: got no {missing}; need the file of a run")
            found = cast("dict[str, Any]", found)[field_name]
        return found

    def settings(self, name: str) -> dict[str, Any]:
        """The settings of a run, as in its `config.json`."""
        return read_stored(self.directory(name) / "config.json")

    def stamps(self) -> Mapping[str, tuple[int, int]]:
        """A value for each run that changes when its metrics or trees do."""
        return {
            name: (_stamp(path / "metrics.jsonl"), _stamp(path / "trees")) for name, path in self.directories().items()
        }


def settings_rows(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings as rows: the field's path, and its value on one line."""
    rows: dict[str, str] = {}
    for field_name, value in settings.items():
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            if "piece" in inner:
                rows[f"{prefix}{field_name}"] = _piece(inner)
            rows |= settings_rows(
                {key: each for key, each in inner.items() if key != "piece"}, f"{prefix}{field_name}."
            )
        elif not (prefix == "" and field_name == "piece"):
            rows[f"{prefix}{field_name}"] = json.dumps(value)
    return rows


def _shown_settings(directory: Path) -> Row:
    """The settings in the row of a run."""
    file = directory / "config.json"
    config = read_stored(file)
    try:
        world, method = config["world"], config["method"]
        return {
            "world": world["name"],
            "policy": _piece(world["policy"]),
            "credit": _piece(method["credit"]),
            "objective": _piece(method["objective"]),
            "seed": config["seed"],
        }
    except (LookupError, TypeError, AttributeError) as error:
        raise StoreError(f"{file}: got settings of no run ({error}); need the file as the run wrote it") from error


def _piece(value: Mapping[str, Any] | None) -> str:
    """The name of a piece in a `config.json`."""
    return "none" if not value else str(value.get("piece", "")).rpartition(":")[2]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
