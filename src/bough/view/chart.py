"""Line charts as inline SVG."""

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from bough.view.numbers import percent, short, typeset

LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 26
"""Margins of the drawing, in units of its view box; the left one grows with the labels of the y axis."""
GAP, LETTER = 8, 7
"""Space between the labels of the y axis and the drawing; width of one letter of a label."""
SIZE, WIDE_SIZE = (500, 200), (1040, 290)
SMOOTH_FROM = 40
"""Number of points from which a line is drawn as a running mean, with the points behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line of a chart: y over x, ascending in x and finite.

    Attributes:
        label: In the legend.
        tone: Which of the page's colours: "one", "two".
        x: Steps.
        y: Values.
        band: Low and high at each x, or none.
        marked: Whether each value gets a dot; such a line is never smoothed.
    """

    label: str
    tone: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    band: tuple[tuple[float, float], ...] = ()
    marked: bool = False

    @property
    def window(self) -> int:
        """The number of points of a running mean; 1 for none."""
        return 1 if self.marked or len(self.x) < SMOOTH_FROM else math.ceil(len(self.x) / 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart of several series over the same steps.

    Attributes:
        title: The title, with the unit.
        series: At least one, each with at least one point.
        share: Whether values are fractions, written in percent.
        full: Whether the axis runs from 0 to 1 for any values.
        wide: Whether it takes the width of the page.
        span: First and last step of the axis; those of the series by default.
        warmup: The last step of the warm-up, after which a running mean restarts.
    """

    title: str
    series: tuple[Series, ...]
    share: bool = False
    full: bool = False
    wide: bool = False
    span: tuple[float, float] | None = None
    warmup: float | None = None


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps values to positions in the drawing."""

    size: tuple[int, int]
    left: int
    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def right(self) -> int:
        return self.size[0] - RIGHT

    @property
    def floor(self) -> int:
        return self.size[1] - BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * (self.right - self.left), self.floor - up * (self.floor - TOP)

    def points(self, x: Sequence[float], y: Sequence[float]) -> str:
        return " ".join(f"{left:.1f},{top:.1f}" for left, top in map(self.at, x, y))


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers 1, 2 or 5 times a power of ten apart that cover `low` to `high`, at least two."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [tick * step for tick in range(first, max(last, first + 1) + 1)]


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """The mean over `window` values around each one, fewer at the ends."""
    before, after = (window - 1) // 2, window // 2 + 1
    parts = [values[max(0, at - before) : at + after] for at in range(len(values))]
    return [sum(part) / len(part) for part in parts]


def figure(chart: Chart) -> str:
    """The chart as an HTML figure: title, newest values, drawing, and its numbers for the page's script.

    A chart of single points shows only its values, without a drawing.
    """
    write = percent if chart.share else _short
    newest = "".join(
        f'<span class="{each.tone}"><i></i>{escape(each.label)} <b>{_value(each, -1, write)}</b></span>'
        for each in chart.series
    )
    caption = (
        f"<figcaption><h3>{escape(chart.title)}</h3>"
        f'<p class="legend">{newest}<span class="at">step {max(each.x[-1] for each in chart.series):g}</span></p>'
        "</figcaption>"
    )
    if all(len(each.x) == 1 for each in chart.series):
        return f'<figure class="values">{caption}</figure>'
    frame, y_ticks = _frame(chart)
    spoken = "; ".join(
        f"{each.label} from {write(each.y[0])} at step {each.x[0]:g} to {write(each.y[-1])} at step {each.x[-1]:g}"
        for each in chart.series
    )
    lines = "".join(_line(each, frame, chart.warmup) for each in chart.series)
    dots = "".join(f'<circle class="{each.tone}" r="3.5"/>' for each in chart.series)
    return (
        f'<figure class="chart{" wide" if chart.wide else ""}">{caption}<div class="scroll">'
        f'<svg viewBox="0 0 {frame.size[0]} {frame.size[1]}" role="img" tabindex="0" '
        f'aria-label="{escape(f"{chart.title}: {spoken}")}">{_axes(chart, frame, y_ticks)}{lines}'
        f'<g class="cursor"><line y1="{TOP}" y2="{frame.floor}"/>{dots}</g></svg></div>'
        f'<script type="application/json">{_data(chart, frame, write)}</script></figure>'
    )


def _frame(chart: Chart) -> tuple[_Frame, list[float]]:
    """The mapping of values, and the ticks of the y axis, whose ends are the ends of the frame."""
    xs = [*(chart.span or ()), *(x for each in chart.series for x in each.x)]
    values = [y for each in chart.series for y in each.y] + [
        end for each in chart.series for b in each.band for end in b
    ]
    y_ticks = [0.0, 0.25, 0.5, 0.75, 1.0] if chart.full else ticks(min(values), max(values))
    left = max(LEFT, 2 * GAP + LETTER * max(map(len, _labels(chart, y_ticks))))
    return _Frame(WIDE_SIZE if chart.wide else SIZE, left, (min(xs), max(xs)), (y_ticks[0], y_ticks[-1])), y_ticks


def _labels(chart: Chart, y_ticks: Sequence[float]) -> list[str]:
    """The tick labels of the y axis: distinct, with as few digits as possible."""
    if chart.share:
        return [f"{100 * tick:g}%" for tick in y_ticks]
    written = ([_short(tick, digits) for tick in y_ticks] for digits in range(3, 16))
    return next(labels for labels in written if len(set(labels)) == len(labels))


def _axes(chart: Chart, frame: _Frame, y_ticks: list[float]) -> str:
    parts: list[str] = []
    if chart.warmup is not None and chart.warmup > frame.x[0]:
        edge, _ = frame.at(min(chart.warmup, frame.x[1]), frame.y[0])
        width, height = f"{edge - frame.left:.1f}", frame.floor - TOP
        parts.append(
            f'<rect class="warmup" x="{frame.left}" y="{TOP}" width="{width}" height="{height}"/>'
            f'<text class="phase" x="{frame.left + 6}" y="{TOP + 14}">warm-up</text>'
        )
    for tick, label in zip(y_ticks, _labels(chart, y_ticks), strict=True):
        _, top = frame.at(frame.x[0], tick)
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{frame.right}" y1="{top:.1f}" y2="{top:.1f}"/>')
        parts.append(f'<text x="{frame.left - GAP}" y="{top + 4:.1f}" text-anchor="end">{label}</text>')
    steps = [tick for tick in ticks(*frame.x, about=6) if frame.x[0] <= tick <= frame.x[1] and tick == round(tick)]
    for tick in steps:
        left, _ = frame.at(tick, frame.y[0])
        parts.append(f'<text x="{left:.1f}" y="{frame.floor + 18}" text-anchor="middle">{tick:,.0f}</text>')
    return "".join(parts)


def _line(each: Series, frame: _Frame, warmup: float | None) -> str:
    parts: list[str] = []
    if each.band:
        lows, highs = zip(*each.band, strict=True)
        edge = f"{frame.points(each.x, highs)} {frame.points(each.x[::-1], lows[::-1])}"
        parts.append(f'<polygon class="band {each.tone}" points="{edge}"/>')
    if each.window > 1:
        parts.append(f'<polyline class="faint {each.tone}" points="{frame.points(each.x, each.y)}"/>')
    # Values before and after the warm-up are of different kinds, so no mean runs across.
    cut = bisect_left(each.x, warmup + 1) if warmup is not None and not each.marked else 0
    for run in (slice(0, cut), slice(cut, None)):
        if each.x[run]:
            line = frame.points(each.x[run], running_mean(each.y[run], each.window))
            parts.append(f'<polyline class="{each.tone}" points="{line}"/>')
    if each.marked or len(each.x) == 1:
        parts += [
            f'<circle class="{each.tone}" cx="{left:.1f}" cy="{top:.1f}" r="3"/>'
            for left, top in map(frame.at, each.x, each.y)
        ]
    return "".join(parts)


def _short(value: float, digits: int = 3) -> str:
    return typeset(short(value, digits))


def _value(each: Series, at: int, write: Callable[[float], str]) -> str:
    low, high = each.band[at] if each.band else (0.0, 0.0)
    return write(each.y[at]) + (f" ({100 * low:.1f}\u2013{100 * high:.1f})" if each.band else "")


def _data(chart: Chart, frame: _Frame, write: Callable[[float], str]) -> str:
    """Data of the page's script for the pointer."""
    data = {
        "box": [frame.left, frame.right, TOP, frame.floor],
        "x": frame.x,
        "y": frame.y,
        "series": [
            {
                "x": each.x,
                "y": [round(y, 6) for y in each.y],
                "text": [_value(each, i, write) for i in range(len(each.x))],
            }
            for each in chart.series
        ],
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
