"""Percentages over budgets or numbers of ranks as a drawing, one line with its intervals for each name."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 48, 120, 16, 44
COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d")


def write_curves(
    path: Path,
    budgets: Sequence[int],
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    unit: str,
    times: str = "x",
) -> None:
    """Write an SVG.

    Args:
        path: Where to.
        budgets: n of them, ascending; evenly spaced in the drawing.
        lines: By name, n means with half the width of their intervals, in percent.
        unit: What a budget of 1 is.
        times: Written after each budget.
    """
    step = (WIDTH - LEFT - RIGHT) / max(1, len(budgets) - 1)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for percent in range(0, 101, 20):
        y = _y(percent)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent}%</text>')
    for place, budget in enumerate(budgets):
        x = LEFT + place * step
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{budget}{times}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(unit)}</text>'
    )
    # Labels stand at the ends of their lines, pushed apart where those meet.
    ends = sorted(lines, key=lambda name: -lines[name][-1][0])
    label = float("-inf")
    labels: dict[str, float] = {}
    for name in ends:
        label = max(_y(lines[name][-1][0]) + 4, label + 14)
        labels[name] = label
    for (name, values), colour in zip(lines.items(), COLOURS, strict=False):
        points = [(LEFT + place * step, _y(mean)) for place, (mean, _) in enumerate(values)]
        parts.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" '
            'stroke-width="2"/>'
        )
        for (x, y), (mean, half) in zip(points, values, strict=True):
            low, high = _y(max(0.0, mean - half)), _y(min(100.0, mean + half))
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}" opacity=".4"/>'
            )
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{labels[name]:.1f}" fill="{colour}">{escape(name)}</text>')
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _y(percent: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - percent / 100)
