"""A comparison as JSON for the viewer, and as rows for Parquet."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from bough.compare.cells import Pair
from bough.compare.comparison import Comparison
from bough.store import check_output
from bough.version import install


def record(found: Comparison) -> dict[str, object]:
    """The comparison as JSON values, for `comparison.json`."""
    return {
        "budget": found.budget,
        "amounts": dict(found.amounts),
        "cells": [
            {
                "method": each.method,
                "world": each.world,
                "measure": each.measure,
                "seeds": list(each.seeds),
                "tasks": len(each.tasks),
                "mean": each.mean,
                "low": each.low,
                "high": each.high,
                "start": float(each.start.mean()) if each.seeds else math.nan,
                "spent": dict(each.spent),
                "failures": {str(seed): reason for seed, reason in each.failures.items()},
            }
            for each in found.cells
        ],
        "pairs": [_pair_record(each) for each in found.pairs],
        "curves": [
            {
                "method": each.method,
                "world": each.world,
                "seed": each.seed,
                "run": str(each.directory.resolve()),
                "steps": list(curve.steps),
                "spent": {name: values.tolist() for name, values in curve.spent.items()},
                "mean": curve.values.mean(axis=1).tolist(),
            }
            for each, curve in found.curves.items()
        ],
        "notes": list(found.notes),
    }


def _pair_record(pair: Pair) -> dict[str, object]:
    low, high = pair.difference.interval()
    numbers = {name: value for name, value in asdict(pair).items() if name != "difference"}
    found = pair.difference
    return {**numbers, "mean": found.mean, "low": low, "high": high, "p": found.p, "verdict": pair.verdict}


def rows(found: Comparison) -> Iterator[dict[str, object]]:
    """A row for each run, evaluation and held-out task: all that the tables are made from."""
    measures = {each.world: each.measure for each in found.cells}
    for run, curve in found.curves.items():
        for place, step in enumerate(curve.steps):
            spent = {name: float(values[place]) for name, values in curve.spent.items()}
            about = {"method": run.method, "world": run.world, "seed": run.seed, "step": step, **spent}
            for task, value in zip(curve.tasks, curve.values[place].tolist(), strict=True):
                yield {**about, "task": task, "measure": measures[run.world], "value": value}


def write_parquet(found: Comparison, path: Path) -> None:
    """Write `rows` as a Parquet file.

    Raises:
        ImportError: without the extra `parquet`.
        StoreError: when the file is a run's own.
    """
    check_output(path)
    try:
        table: Any = import_module("pyarrow").Table
        write: Any = import_module("pyarrow.parquet").write_table
    except ImportError as error:
        raise ImportError(f"{path}: needs pyarrow; {install('parquet')}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write(table.from_pylist(list(rows(found))), path)
