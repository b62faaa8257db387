"""Methods compared on worlds: what each reached at an equal budget, and which differences are more than chance."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from bough.compare.cells import ALL_WORLDS, Cell, Pair
from bough.compare.contestants import Contestant
from bough.compare.curve import METRICS, Budget, Curve, Measure, read_curve
from bough.compare.statistics import (
    Floats,
    bootstrap_interval,
    difference,
    holm,
    improvement,
    mean_difference,
)
from bough.compare.tables import markdown
from bough.config import ConfigError
from bough.store import StoreError
from bough.store.run_status import run_status
from bough.units import number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How runs are read and held against each other.

    Attributes:
        budget: What is held equal.
        amount: How much of it; in each world the most that all its runs spent if None.
        measure: What is compared; rewards where they are graded, else success, if None.
        against: The method that the others are held against; every method against every other if None.
        detect: A difference that the comparison is to show; a note says where it can't.
    """

    budget: Budget = "tokens"
    amount: float | None = None
    measure: Measure | None = None
    against: str | None = None
    detect: float | None = None

    def __post_init__(self) -> None:
        known = (("budget", self.budget, METRICS), ("measure", self.measure, (None, "success", "reward")))
        for name, value, values in known:
            if value not in values:
                raise ConfigError(f"{name}: got {value!r}; need {', '.join(map(str, filter(None, values)))}")
        for name, number in (("amount", self.amount), ("detect", self.detect)):
            if number is not None and not 0 < number < math.inf:
                raise ConfigError(f"{name}: got {number}; need a finite number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Runs of several methods, read at an equal budget.

    Attributes:
        budget: What is equal.
        amounts: By world, how much of it; infinite where all runs solved their tasks before.
        cells: Methods on worlds.
        pairs: Differences, those of a world after each other.
        curves: The runs' curves.
        notes: What a reader has to know, a sentence each.
    """

    budget: Budget
    amounts: Mapping[str, float]
    cells: Sequence[Cell]
    pairs: Sequence[Pair]
    curves: Mapping[Contestant, Curve]
    notes: Sequence[str]

    @property
    def methods(self) -> list[str]:
        """The methods, in order."""
        return list(dict.fromkeys(each.method for each in self.cells))

    @property
    def worlds(self) -> list[str]:
        """The worlds, in order."""
        return list(dict.fromkeys(each.world for each in self.cells))

    @property
    def text(self) -> str:
        """Tables in Markdown."""
        return markdown(self.budget, self.amounts, self.cells, self.pairs, self.notes)

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def compare_runs(runs: Sequence[Contestant], reading: Reading | None = None) -> Comparison:
    """Compare runs at an equal budget; of one method there are no pairs, but its results with intervals.

    Each run is read where it had spent the budget, between its two nearest evaluations, on the tasks that all runs of a
    world measured. A run that ended because nothing was left to learn keeps its last value.

    Args:
        runs: The runs; failed ones too, which are named in the notes.
        reading: How they are read; as `Reading()` if None.

    Raises:
        ConfigError: when no method has the name `against`.
        StoreError: when a run has no held-out result, or a damaged file; when runs share no held-out task.
    """
    reading = reading or Reading()
    methods, against = list(dict.fromkeys(each.method for each in runs)), reading.against
    if against is not None and against not in methods:
        raise ConfigError(f"against: got {against!r}; need one of {', '.join(methods)}")
    notes: list[str] = []
    cells: list[Cell] = []
    curves: dict[Contestant, Curve] = {}
    amounts: dict[str, float] = {}
    for world in dict.fromkeys(each.world for each in runs):
        members = [each for each in runs if each.world == world]
        read, measure = _read(members, reading.measure)
        curves |= read
        amounts[world] = _amount(world, read, reading, notes)
        cells += _cells(members, read, measure, reading.budget, amounts[world], notes)
    drawn = [each for world in amounts for each in _pairs([cell for cell in cells if cell.world == world], against)]
    alike = len({each.measure for each in cells}) < 2
    pairs = _corrected([*drawn, *(_over_worlds(drawn) if alike else ())])
    if not alike:
        notes.append("there is no mean over worlds, as some measure success and some reward: choose one by --measure")
    notes += _unfinished(curves)
    notes += _seed_notes(cells, pairs)
    notes += _undetectable(pairs, reading.detect) if reading.detect else ()
    return Comparison(budget=reading.budget, amounts=amounts, cells=cells, pairs=pairs, curves=curves, notes=notes)


def _read(members: Sequence[Contestant], measure: Measure | None) -> tuple[dict[Contestant, Curve], Measure]:
    """The curves of the runs of a world that have results; rewards where one of them is graded."""
    finished = [each for each in members if not each.failure]
    found = {each: read_curve(each.directory, measure) for each in finished}
    chosen = measure or ("reward" if any(kind == "reward" for _, kind in found.values()) else "success")
    return {
        each: curve if kind == chosen else read_curve(each.directory, chosen)[0]
        for each, (curve, kind) in found.items()
    }, chosen


def _amount(world: str, curves: Mapping[Contestant, Curve], reading: Reading, notes: list[str]) -> float:
    """The budget of a world: the asked amount, or less where a run has spent less; nan without a run."""
    budget, amount = reading.budget, reading.amount
    reach = min((each.reach(budget) for each in curves.values()), default=math.nan)
    if amount is None or not reach < amount:
        return reach if amount is None else amount
    short = min(curves, key=lambda each: curves[each].reach(budget))
    notes.append(
        f"{world}: {short.directory.name} spent only {reach:,.0f} of {amount:,.0f} {budget}, so all runs are read "
        "there; give them more steps"
    )
    return reach


def _cells(
    members: Sequence[Contestant],
    curves: Mapping[Contestant, Curve],
    measure: Measure,
    budget: Budget,
    amount: float,
    notes: list[str],
) -> Iterator[Cell]:
    world, known = members[0].world, [each.tasks for each in curves.values()]
    common = [task for task in known[0] if all(task in each for each in known)] if known else []
    if known and not common:
        raise StoreError(
            f"{world}: got runs without a common held-out task; need runs with the same evaluation.tasks and "
            "evaluation.seed"
        )
    left_out = max(map(len, known), default=0) - len(common)
    if left_out:
        notes.append(f"{world}: {number_of(left_out, 'held-out task')} left out, which not all evaluations measured")
    for method in dict.fromkeys(each.method for each in members):
        runs = sorted((each for each in curves if each.method == method), key=lambda each: each.seed)
        values = np.asarray([curves[each].at(budget, amount, common) for each in runs]).reshape(len(runs), len(common))
        low, high = bootstrap_interval(values) if runs else (math.nan, math.nan)
        yield Cell(
            method=method,
            world=world,
            measure=measure,
            seeds=[each.seed for each in runs],
            tasks=common,
            values=values,
            low=low,
            high=high,
            start=np.asarray([curves[each].at(budget, 0, common) for each in runs]).reshape(values.shape),
            spent={
                name: float(np.mean([curves[each].spent[name][-1] for each in runs])) if runs else math.nan
                for name in METRICS
            },
            failures={each.seed: each.failure for each in members if each.method == method and each.failure},
        )


def _pairs(cells: Sequence[Cell], against: str | None) -> Iterator[Pair]:
    """The pairs of the methods of a world that have runs."""
    ran = {each.method: each for each in cells if each.seeds}
    names = combinations(ran, 2) if against is None else ((against, each) for each in ran if each != against)
    for base, method in names:
        if base in ran:
            yield _pair(ran[method], ran[base])


def _pair(cell: Cell, base: Cell) -> Pair:
    common = sorted({*cell.seeds} & {*base.seeds})
    paired = len(common) > 1 or cell.seeds == base.seeds
    one, other = (_rows(each, common) if paired else each.values for each in (cell, base))
    apart = one.mean(axis=0) - other.mean(axis=0)
    return Pair(
        method=cell.method,
        against=base.method,
        world=cell.world,
        difference=difference(one, other, same_seeds=paired),
        corrected=math.nan,
        detectable=math.nan,
        improvement=improvement(one.mean(axis=1), other.mean(axis=1)),
        better=int((apart > 0).sum()),
        worse=int((apart < 0).sum()),
        paired=paired,
        seeds=min(len(one), len(other)),
    )


def _rows(cell: Cell, seeds: Sequence[int]) -> Floats:
    return cell.values[[cell.seeds.index(each) for each in seeds]]


def _over_worlds(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The mean difference over worlds, of each pair of methods that has several."""
    for method, against in dict.fromkeys((each.method, each.against) for each in pairs):
        several = [each for each in pairs if (each.method, each.against) == (method, against)]
        if len(several) > 1:
            yield Pair(
                method=method,
                against=against,
                world=ALL_WORLDS,
                difference=mean_difference([each.difference for each in several]),
                corrected=math.nan,
                detectable=math.nan,
                improvement=sum(each.improvement for each in several) / len(several),
                better=sum(each.better for each in several),
                worse=sum(each.worse for each in several),
                paired=all(each.paired for each in several),
                seeds=min(each.seeds for each in several),
            )


def _corrected(pairs: Sequence[Pair]) -> list[Pair]:
    corrected, level = holm([each.difference.p for each in pairs]), 0.05 / max(1, len(pairs))
    return [
        replace(pair, corrected=p, detectable=pair.difference.detectable(level))
        for pair, p in zip(pairs, corrected, strict=True)
    ]


def _unfinished(runs: Iterable[Contestant]) -> Iterator[str]:
    """The runs that are read as far as they are."""
    for run in runs:
        status = run_status(run.directory)
        if status.state != "done":
            why = f" ({status.why})" if status.why else ""
            yield f"{run.directory.name} is {status.state}{why}, and is read as far as it is"


def _seed_notes(cells: Sequence[Cell], pairs: Sequence[Pair]) -> Iterator[str]:
    for cell in cells:
        for seed, failure in sorted(cell.failures.items()):
            yield f"{cell.method} on {cell.world}, seed {seed}, has no result: {failure}"
    if any(each.seeds == 1 for each in pairs):
        yield (
            "with one seed an interval is that of these trained weights over tasks; it does not say what the method "
            "does with another seed: take five or more"
        )
    if any(math.isnan(each.difference.p) for each in pairs):
        yield "a pair without a p-value has values that never vary, so that chance has no estimate: take more tasks"
    seeds = {(each.world, each.method): {*each.seeds} for each in cells}
    for pair in pairs:
        one, other = (seeds.get((pair.world, name), set[int]()) for name in (pair.method, pair.against))
        if pair.paired and one != other:
            apart = ", ".join(map(str, sorted(one ^ other)))
            about = f"{pair.method} against {pair.against} on {pair.world}"
            yield f"{about} is without seeds {apart}, which one of them lacks"
    if any(not each.paired for each in pairs):
        yield "pairs with different seeds are compared as independent runs"


def _undetectable(pairs: Sequence[Pair], detect: float) -> Iterator[str]:
    """The pairs whose runs would miss a difference too often."""
    level = 0.05 / len(pairs)
    for pair in pairs:
        if pair.detectable <= detect or math.isnan(pair.detectable):
            continue
        seeds = pair.difference.needed_seeds(detect, pair.seeds, level)
        more = f"about {seeds} seeds" if seeds else "more held-out tasks (evaluation.tasks.count) as well as more seeds"
        yield (
            f"{pair.method} against {pair.against} on {pair.world}: these runs show a difference of "
            f"{pair.detectable:.3g} or more in four of five comparisons; to show {detect:g} take {more}"
        )
