"""The runs below some folders, as the viewer lists them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from bough.store import RunDirectory, StoreError, run_status
from bough.store.atomic import read_stored
from bough.viewer.health import STAGES, seconds
from bough.viewer.metric_lines import MetricLines
from bough.viewer.run_settings import piece_name, setting

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
        state, why  "training", "done", "stopped" or "crashed", and the reason in a sentence; see `run_status`
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
        status = run_status(directory)
        return {
            "name": name,
            "path": str(directory),
            **shown,
            "state": status.state,
            "why": status.why,
            "ended": status.at,
            "step": lines[-1]["step"] if lines else 0,
            "phase": lines[-1].get("phase", "") if lines else "",
            "success": rates,
            "tokens": sum(_number(each.get("speed/sampled_tokens")) for each in lines),
            "seconds": sum(seconds(each, stage) for each in lines for stage in STAGES),
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
        return setting(self.directory(name) / "config.json", self.settings(name), *fields)

    def settings(self, name: str) -> dict[str, Any]:
        """The settings of a run, as in its `config.json`."""
        return read_stored(self.directory(name) / "config.json")

    def stamps(self) -> Mapping[str, tuple[int, ...]]:
        """A value for each run that changes when its metrics, trees, alarms or status do."""
        files = ("metrics.jsonl", "trees", "alarms.jsonl", "status.json")
        return {name: tuple(_stamp(path / each) for each in files) for name, path in self.directories().items()}


def _shown_settings(directory: Path) -> Row:
    """The settings in the row of a run."""
    file = directory / "config.json"
    config = read_stored(file)
    try:
        world, method = config["world"], config["method"]
        return {
            "world": world["name"],
            "policy": piece_name(world["policy"]),
            "credit": piece_name(method["credit"]),
            "objective": piece_name(method["objective"]),
            "seed": config["seed"],
        }
    except (LookupError, TypeError, AttributeError) as error:
        raise StoreError(f"{file}: got settings of no run ({error}); need the file as the run wrote it") from error


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
