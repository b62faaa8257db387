"""The report of a run: one self-contained HTML file."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import cast

from bough.units import number_of
from bough.usercode.json_file import json_text
from bough.usercode.origin import shorten
from bough.view.chart import figure
from bough.view.choose import Group, choose_groups
from bough.view.curves import Row, curves
from bough.view.numbers import duration
from bough.view.outline import outline
from bough.view.results import Panel, headline, results

MOST_ITEMS, MOST_CHARACTERS = 100, 10_000
"""Items of a list and characters of a text that the settings in a report show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of a report.

    Attributes:
        name: Name of the run.
        recipe: Its credit, objective and world.
        config: Every setting; values that JSON can write.
        manifest: Versions, machine, and checksums; see `bough.store.describe`.
        metrics: The rows of `metrics.jsonl`: "step" ascending over the whole run, "phase" ("warmup", "start", "rl"),
            and numbers by name.
        panels: Held-out results, earliest first; the report's headline compares the last two.
        groups: Groups from which the report chooses three, usually those of the last steps.
        notes: Notes at the top, such as an early stop.
    """

    name: str
    recipe: str
    config: Mapping[str, object]
    metrics: Sequence[Row]
    panels: tuple[Panel, ...] = ()
    groups: Sequence[Group] = ()
    manifest: Mapping[str, object] = field(default_factory=dict[str, object])
    notes: tuple[str, ...] = ()


def write_report(path: Path, report: Report) -> None:
    """Write the report as HTML to `path`, completely or not at all. The page loads no other resources."""
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        temporary.write_text(page(report), encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def page(report: Report) -> str:
    """The report as HTML."""
    style, script = ((files("bough.view") / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.name)} · Bough</title><style>{style}</style></head><body><main>"
        f'<header><p class="over">Bough · run report</p><h1>{escape(report.name)}</h1>'
        f'<p class="facts">{_facts(report)}</p>'
        f'<p class="headline">{escape(headline(report.panels))}</p>{notes}</header>'
        f"{results(report.panels)}{_curves(report)}{_time(report.metrics)}{_groups(report.groups)}"
        f"{_json('Configuration', report.config)}{_json('Made with', report.manifest)}"
        f"</main><script>{script}</script></body></html>\n"
    )


def _facts(report: Report) -> str:
    steps = [int(row["step"]) for row in report.metrics]
    spent_s = sum(_spent(report.metrics).values())
    facts = [
        f"recipe {report.recipe}",
        number_of(max(steps), "step") if steps else "no steps",
        f"{duration(spent_s)} of training" if spent_s else "",
        str(report.manifest.get("created", "")).replace("T", " ").replace("+00:00", " UTC"),
    ]
    return " · ".join(escape(fact) for fact in facts if fact)


def _curves(report: Report) -> str:
    charts = curves(report.metrics, graded=any(each.graded for each in report.panels))
    if not charts:
        return ""
    window = max(each.window for chart in charts for each in chart.series)
    smooth = f" Thin lines are single steps, thick lines running means of up to {window} steps." if window > 1 else ""
    band = any(each.band and len(each.x) > 1 for chart in charts for each in chart.series)
    shade = " Bands are 95% intervals of held-out means." if band else ""
    return (
        f'<section><h2>Curves</h2><p class="lead">Over training steps.{shade}{smooth}</p>'
        f'<div class="charts">{"".join(map(figure, charts))}</div></section>'
    )


def _spent(rows: Sequence[Row]) -> dict[str, float]:
    """Seconds spent in each stage, without the parts of stages, `time/NAME/PART_s`."""
    spent: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith("time/") and name.count("/") == 1 and not isinstance(value, str) and value > 0:
                stage = name.removeprefix("time/").removesuffix("_s")
                spent[stage] = spent.get(stage, 0.0) + value
    return spent


def _time(rows: Sequence[Row]) -> str:
    spent = _spent(rows)
    total_s = sum(spent.values())
    if not total_s:
        return ""
    longest = sorted(spent.items(), key=lambda item: -item[1])
    bar = "".join(
        f'<span class="part p{at % 6}" style="flex-grow:{spent_s / total_s:.4f}"></span>'
        for at, (_, spent_s) in enumerate(longest)
    )
    names = "".join(
        f'<li><i class="part p{at % 6}"></i>{escape(stage)} <b>{_share(spent_s / total_s)}</b> '
        f"<span>{duration(spent_s)}</span></li>"
        for at, (stage, spent_s) in enumerate(longest)
    )
    return (
        f'<section><h2>Time</h2><div class="bar" aria-hidden="true">{bar}</div><ul class="parts">{names}</ul></section>'
    )


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "&lt;1%"


def _groups(groups: Sequence[Group]) -> str:
    chosen = choose_groups(groups)
    if chosen is None:
        return ""
    kinds = (
        ("Best", "highest mean return", chosen.best),
        ("Most divided", "share of successes nearest to a half", chosen.divided),
        ("Worst", "lowest mean return", chosen.worst),
    )
    drawn: list[str] = []
    for at, (name, why, group) in enumerate(kinds):
        if any(group is earlier for _, _, earlier in kinds[:at]):
            continue
        also = [other.lower() for other, _, later in kinds[at + 1 :] if later is group]
        names = ", ".join([name, *also[:-1]]) + "".join(f" and {other}" for other in also[-1:])
        drawn.append(outline(names, why if not also else "", group))
    count = number_of(len(groups), "group")
    return (
        f'<section><h2>Trees</h2><p class="lead">Chosen from {count}. Each line is a path: its actions in order, green '
        "for a positive advantage, red for a negative one. Unfold a line to see it turn by turn.</p>"
        f"{''.join(drawn)}</section>"
    )


def _short(value: object) -> object:
    """A JSON value with the begins of its long lists and texts; the file has them whole."""
    if isinstance(value, Mapping):
        return {name: _short(each) for name, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, str):
        return shorten(value, MOST_CHARACTERS)
    if not isinstance(value, list | tuple):
        return value
    items = cast("Sequence[object]", value)
    more = [f"... (cut: {len(items):,} items)"] if len(items) > MOST_ITEMS else []
    return [*map(_short, items[:MOST_ITEMS]), *more]


def _json(title: str, value: Mapping[str, object]) -> str:
    if not value:
        return ""
    text = escape(json_text(_short(value), indent=2, ascii_only=False))
    return f'<details class="json"><summary><h2>{title}</h2></summary><pre>{text}</pre></details>'
