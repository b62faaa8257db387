"""A comparison as tables in Markdown."""

import math
from collections.abc import Mapping, Sequence

from bough.compare.cells import ALL_WORLDS, Cell, Pair
from bough.compare.curve import Budget
from bough.compare.statistics import Difference
from bough.view.numbers import duration, short

UNITS: dict[Budget, str] = {"tokens": "sampled tokens", "actions": "actions", "seconds": "seconds"}


def markdown(
    budget: Budget, amounts: Mapping[str, float], cells: Sequence[Cell], pairs: Sequence[Pair], notes: Sequence[str]
) -> str:
    """The tables: for each world what each method reached, then the pairs, then the notes."""
    parts: list[str] = []
    for world in dict.fromkeys(each.world for each in cells):
        amount = amounts[world]
        at = f"at {amount:,.0f} {UNITS[budget]}" if math.isfinite(amount) else "at the end"
        parts.append(_world([each for each in cells if each.world == world], at))
        measure = next(each.measure for each in cells if each.world == world)
        parts.append(_pairs([each for each in pairs if each.world == world], measure))
    together = [each for each in pairs if each.world == ALL_WORLDS]
    if together:
        parts.append(f"**{ALL_WORLDS}**: mean of the differences")
        parts.append(_pairs(together, cells[0].measure))
    parts.append("\n".join(f"- {_cell(note)}" for note in notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _world(cells: Sequence[Cell], at: str) -> str:
    measure, count = cells[0].measure, len(cells[0].tasks)
    lines = [
        f"**{_cell(cells[0].world)}**: held-out {measure} {at}, {count} tasks",
        "",
        f"| method | {measure} | 95 % interval | gain | 95 % interval | by seed | sampled tokens | actions | time |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_cell_row, cells),
    ]
    return "\n".join(lines)


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


def _pairs(pairs: Sequence[Pair], measure: str) -> str:
    """A table of pairs; "" without any."""
    if not pairs:
        return ""
    lines = [
        "| method | against | difference | 95 % interval | p | corrected | verdict | chance to be better "
        "| tasks better, worse | detectable |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_pair_row(each, measure) for each in pairs),
    ]
    return "\n".join(lines)


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
