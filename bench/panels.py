"""Drawings of means over an axis of numbers, side by side, one line with its intervals for each method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log2
from pathlib import Path

COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#444444", "#e6ab02", "#56b4e9")
HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP, FONT = 340, 48, 130, 30, 44, 20, 12
LABEL = 14
"""Vertical distance of the labels at the ends of lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A mean at an x, and half the width of its interval, both in percent."""

    x: float
    mean: float
    half: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A frame with a title, and the points of each method in it."""

    title: str
    lines: Mapping[str, Sequence[Point]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The x axis: its ticks with their texts, whether it is logarithmic, its title."""

    ticks: Mapping[float, str]
    title: str
    log: bool = False

    def place(self, x: float) -> float:
        """From 0 at the first tick to 1 at the last."""
        low, high, value = (log2(each) if self.log else each for each in (min(self.ticks), max(self.ticks), x))
        return (value - low) / (high - low)


def write_panels(path: Path, panels: Sequence[Panel], axis: Axis, *, title: str, width: int = 720) -> None:
    """Write an SVG.

    Args:
        path: Where to.
        panels: From left to right; a method has one colour in all panels. Labels stand in the last panel.
        axis: The x axis of every panel.
        title: Of the y axis, which goes from 0 to 100 percent.
        width: Of the drawing.
    """
    each = (width - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="{FONT}" '
        f'viewBox="0 0 {width} {HEIGHT}">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
        _text((LEFT + width - RIGHT) / 2, HEIGHT - 6, axis.title, anchor="middle"),
        f'<text transform="translate(12 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(title)}</text>",
    ]
    for number, panel in enumerate(panels):
        left = LEFT + number * (each + GAP)
        parts += _frame(panel.title, axis, left, left + each, first=number == 0)
        for name, points in panel.lines.items():
            parts += _line(points, axis, left, each, COLOURS[names.index(name) % len(COLOURS)])
    parts += _labels(panels[-1].lines, names, width - RIGHT + 8)
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _frame(head: str, axis: Axis, left: float, right: float, *, first: bool) -> list[str]:
    parts = [_text((left + right) / 2, TOP - 12, head, anchor="middle")]
    for percent in range(0, 101, 20):
        y = _y(percent)
        parts.append(f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        if first:
            parts.append(_text(left - 6, y + 4, f"{percent}%", anchor="end"))
    for tick, text in axis.ticks.items():
        parts.append(_text(left + axis.place(tick) * (right - left), HEIGHT - BOTTOM + 18, text, anchor="middle"))
    return parts


def _line(points: Sequence[Point], axis: Axis, left: float, width: float, colour: str) -> list[str]:
    at = [(left + axis.place(point.x) * width, point) for point in points]
    corners = " ".join(f"{x:.1f},{_y(point.mean):.1f}" for x, point in at)
    parts = [f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for x, point in at:
        low, high = _y(max(0.0, point.mean - point.half)), _y(min(100.0, point.mean + point.half))
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}" opacity=".4"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{_y(point.mean):.1f}" r="3" fill="{colour}"/>')
    return parts


def _labels(lines: Mapping[str, Sequence[Point]], names: Sequence[str], x: float) -> list[str]:
    """The names at the ends of their lines, pushed apart where they meet, and up where they would leave the frame."""
    ends = sorted((name for name in lines if lines[name]), key=lambda name: -lines[name][-1].mean)
    places, lowest = list[float](), float("-inf")
    for name in ends:
        lowest = max(_y(lines[name][-1].mean) + 4, lowest + LABEL)
        places.append(lowest)
    highest = float(HEIGHT - BOTTOM + 8)
    for number in reversed(range(len(places))):
        highest = places[number] = min(places[number], highest)
        highest -= LABEL
    colours = (COLOURS[names.index(name) % len(COLOURS)] for name in ends)
    return [_text(x, y, name, fill=colour) for name, y, colour in zip(ends, places, colours, strict=True)]


def _text(x: float, y: float, text: str, *, anchor: str = "start", fill: str = "black") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def _y(percent: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - percent / 100)
