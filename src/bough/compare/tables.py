"""A comparison as tables in Markdown, as JSON for the viewer, and as rows for Parquet."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from bough.compare.comparison import ALL_WORLDS, Cell, Comparison, Pair
from bough.compare.curve import Budget
from bough.compare.statistics import Difference
from bough.store import check_output
from bough.version import install
from bough.view.numbers import duration, short

UNITS: dict[Budget, str] = {"tokens": "sampled tokens", "actions": "actions", "seconds": "seconds"}


def markdown(found: Comparison) -> str:
    """The tables: for each world what each method reached, then the pairs, then the notes."""
    parts = [_world(found, world) for world in found.worlds]
    parts += list(filter(None, [_pairs(found, ALL_WORLDS)]))
    parts += ["\n".join(f"- {_cell(note)}" for note in found.notes)] if found.notes else []
    return "\n\n".join(parts) + "\n"


def _world(found: Comparison, world: str) -> str:
    cells = [each for each in found.cells if each.world == world]
    measure, count = cells[0].measure, len(cells[0].tasks)
    amount = found.amounts[world]
    at = f"at {amount:,.0f} {UNITS[found.budget]}" if math.isfinite(amount) else "at the end"
    lines = [
        f"**{_cell(world)}**: held-out {measure} {at}, {count} tasks",
        "",
        f"| method | {measure} | 95 % interval | gain | 95 % interval | by seed | sampled tokens | actions | time |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_cell_row(each) for each in cells),
    ]
    return "\n\n".join(filter(None, ("\n".join(lines), _pairs(found, world))))


def _cell_row(cell: Cell) -> str:
    own = (
        [_number(float(each), cell.measure).removesuffix(" %") for each in cell.values.mean(axis=1)]
        if cell.seeds
        else []
    )
    seeds = ", ".join([*own, *(["failed"] * len(cell.failures))])
    if not cell.seeds:
        return f"| {_cell(cell.method)} | none | | | | {seeds} | | | |"
    low, high = (_number(each, cell.measure) for each in (cell.low, cell.high))
    gain = _number(cell.gain.mean, cell.measure, sign=True)
    tokens, actions, time = (cell.spent[name] for name in ("tokens", "actions", "seconds"))
    return (
        f"| {_cell(cell.method)} | {_number(cell.mean, cell.measure)} | {low} to {high} | {gain} "
        f"| {_interval(cell.gain, cell.measure)} | {seeds} "
        f"| {tokens:,.0f} | {actions:,.0f} | {duration(time)} |"
    )


def _interval(found: Difference, measure: str) -> str:
    low, high = (_number(each, measure, sign=True) for each in found.interval())
    return f"{low} to {high}"


def _pairs(found: Comparison, world: str) -> str:
    """The pairs of a world; "" without any."""
    pairs = [each for each in found.pairs if each.world == world]
    if not pairs:
        return ""
    measures = {each.world: each.measure for each in found.cells}
    measure = measures.get(world) or ("success" if {*measures.values()} == {"success"} else "reward")
    of = "" if world != ALL_WORLDS else f"**{ALL_WORLDS}**: mean of the differences\n\n"
    lines = [
        "| method | against | difference | 95 % interval | p | corrected | verdict | chance to be better "
        "| tasks better, worse | detectable |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_pair_row(each, measure) for each in pairs),
    ]
    return of + "\n".join(lines)


def _pair_row(pair: Pair, measure: str) -> str:
    return (
        f"| {_cell(pair.method)} | {_cell(pair.against)} | {_number(pair.difference.mean, measure, sign=True)} "
        f"| {_interval(pair.difference, measure)} | {_p(pair.difference.p)} | {_p(pair.corrected)} | {pair.verdict} "
        f"| {pair.improvement:.0%} | {pair.better}, {pair.worse} | {_number(pair.detectable, measure)} |"
    )


def _number(value: float, measure: str, *, sign: bool = False) -> str:
    """Success in percent, rewards as they are; a dash where it is not known."""
    if math.isnan(value):
        return "-"
    if measure == "success":
        return f"{100 * value:+.1f}" if sign else f"{100 * value:.1f} %"
    return f"{'+' if sign and value > 0 else ''}{short(value)}"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else "< .001" if value < 0.001 else f"{value:.3f}"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor a line."""
    return " ".join(text.split()).replace("|", "\\|")


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
