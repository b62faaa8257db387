"""The comparisons among some places: what `bough compare` wrote into `comparison.json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from bough.store import StoreError
from bough.store.atomic import read_stored
from bough.viewer.runs import Row, Runs

FILE = "comparison.json"


def comparisons(runs: Runs) -> dict[str, Path]:
    """The files of comparisons, by a name each: that of the folder, with a number where two are alike."""
    found: dict[str, Path] = {}
    for place in runs.places:
        for file in (place / FILE, *sorted(place.glob(f"*/{FILE}"))):
            if file.is_file() and file not in found.values():
                name, number = file.parent.name, 2
                while name in found:
                    name, number = f"{file.parent.name}~{number}", number + 1
                found[name] = file
    return found


def comparison_rows(runs: Runs) -> Row:
    """A row for each comparison: its methods and worlds; one that can't be read has `damaged`, the reason."""
    rows: list[Row] = []
    for name, file in comparisons(runs).items():
        try:
            cells = _cells(file, read_stored(file))
            about = {key: list(dict.fromkeys(str(each[key]) for each in cells)) for key in ("method", "world")}
            rows.append({"name": name, **about, "runs": sum(len(each["seeds"]) for each in cells)})
        except StoreError as error:
            rows.append({"name": name, "damaged": str(error)})
    return {"comparisons": rows}


def comparison(runs: Runs, name: str) -> Row:
    """A comparison as it was written; `run` of a curve is the name of the run in the viewer, None where it has none.

    Raises:
        StoreError: when there is no such comparison, or its file is damaged.
    """
    files = comparisons(runs)
    if name not in files:
        raise StoreError(f"got the comparison {name!r:.80}; need one of {', '.join(files) or 'none: there are none'}")
    stored = read_stored(files[name])
    _cells(files[name], stored)
    names = {str(directory.resolve()): each for each, directory in runs.directories().items()}
    curves = cast("list[dict[str, Any]]", stored.get("curves", []))
    return {**stored, "curves": [{**each, "run": names.get(str(each.get("run")))} for each in curves]}


def _cells(file: Path, stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cells of a comparison, each a method on a world."""
    cells: object = stored.get("cells")
    wanted = {"method", "world", "seeds", "mean", "measure"}
    if not isinstance(cells, list) or not all(isinstance(each, dict) and wanted <= {*each} for each in cells):  # pyright: ignore
        raise StoreError(f"{file}: got no comparison; need the file as `bough compare` wrote it")
    return cast("list[dict[str, Any]]", cells)
