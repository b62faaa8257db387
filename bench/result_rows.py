"""Results of measurements that take hours: a JSON line each, with the commit and the sources they depend on."""

import dataclasses
import inspect
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bough.cli.find import PACKAGE
from bough.train import Run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
Row: TypeAlias = dict[str, Any]


def read_rows(file: Path) -> list[Row]:
    """The rows of a file, in order; none without a file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def add_row(file: Path, row: Mapping[str, Any], key: Sequence[str]) -> None:
    """Add a row in place of the one with the same values of `key`; the file is always whole."""
    rows = [each for each in read_rows(file) if any(each[name] != row[name] for name in key)]
    rows = sorted([*rows, dict(row)], key=lambda each: [str(each[name]) for name in key])
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".tmp")
    new.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    new.replace(file)


def commit() -> str:
    """The commit of the checkout."""
    return _git("rev-parse", "--short=12", "HEAD").strip()


def changed(row: Row) -> bool:
    """Whether a source of the row changed after its commit, or is not committed."""
    sources = [name for name in row["sources"] if (ROOT / name).is_file()]
    if len(sources) < len(row["sources"]):
        return True
    known = subprocess.run(["git", "cat-file", "-e", row["commit"]], cwd=ROOT, check=False, capture_output=True)
    return known.returncode != 0 or bool(_git("diff", "--name-only", row["commit"], "--", *sources))


def sources(run: Run, *names: str) -> list[str]:
    """Files of a run's method, explorer, rules, environment, and of functions by name: `methods/grpo`."""
    files = {inspect.getfile(type(piece)) for part in (run.method, run.world.env) for piece in _pieces(part)}
    files |= {str(PACKAGE / f"{name}.py") for name in names}
    rooms = [path for path in map(Path, files) if path.is_relative_to(PACKAGE) and path.parent != PACKAGE / "train"]
    return sorted(str(path.relative_to(ROOT)) for path in rooms)


def _pieces(value: object) -> Iterator[object]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for each in dataclasses.fields(value):
            yield from _pieces(getattr(value, each.name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _pieces(each)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
