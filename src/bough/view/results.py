"""Held-out results before and after training: the table and the headline of a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from bough.view.interval import paired, wilson
from bough.view.numbers import percent, points, typeset


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The result of a policy on a set of held-out tasks, one path each.

    Attributes:
        label: Time of the evaluation: "untrained", "after warm-up", "after training".
        task_ids: The tasks.
        successes: Whether each was solved.

    Raises:
        ValueError: when there is no task, the two differ in length, or a task occurs twice.
    """

    label: str
    task_ids: tuple[str, ...]
    successes: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not len(self.successes) == len(self.task_ids) == len(set(self.task_ids)) or not self.task_ids:
            raise ValueError(
                f"Panel {self.label!r}: got {len(self.successes)} successes for {len(self.task_ids)} tasks, "
                f"{len(set(self.task_ids))} of them different; need one success for each of one or more tasks"
            )

    @property
    def rate(self) -> float:
        """Fraction of solved tasks, in [0, 1]."""
        return sum(self.successes) / len(self.successes)

    def gain_over(self, earlier: "Panel") -> tuple[float, float, float] | None:
        """Difference of rates and its paired interval, (difference, low, high); None when the tasks differ."""
        if set(self.task_ids) != set(earlier.task_ids):
            return None
        was = dict(zip(earlier.task_ids, earlier.successes, strict=True))
        return self.rate - earlier.rate, *paired([was[task] for task in self.task_ids], self.successes)


def headline(panels: Sequence[Panel]) -> str:
    """The result in a sentence: the last panel against the one before."""
    if not panels:
        return "No held-out tasks were evaluated."
    last = panels[-1]
    if len(panels) == 1:
        low, high = _interval(last)
        return (
            f"Held-out success is {percent(last.rate)} {last.label}, 95% interval {percent(low)} to {percent(high)}, "
            f"on {len(last.task_ids):,} tasks."
        )
    before = panels[-2]
    ends = f"from {percent(before.rate)} {before.label} to {percent(last.rate)} {last.label}"
    gain = last.gain_over(before)
    if gain is None:
        return f"Held-out success went {ends}, on different tasks."
    difference, low, high = gain
    verb = "rose" if low > 0 else "fell" if high < 0 else "went"
    doubt = "" if verb != "went" else " This could be chance."
    return (
        f"Held-out success {verb} {ends}: {points(difference)} points, 95% interval {points(low)} to {points(high)}, "
        f"on {len(last.task_ids):,} tasks.{doubt}"
    )


def results(panels: Sequence[Panel]) -> str:
    """The table of panels, with intervals, and the change from each to the next; empty without panels."""
    if not panels:
        return ""
    changes = [_change(after, before) for before, after in pairwise(panels)]
    titles, note = "", "Intervals are Wilson's."
    if changes:
        changes.insert(0, '<td class="none">\u2013</td><td></td>')
        titles = "<th>change</th><th>95% interval</th>"
        note = (
            "Intervals of rates are Wilson's. Changes are from the row above, on the same tasks, with Newcombe's "
            "interval for paired proportions."
        )
    rows = "".join(_row(panel, change) for panel, change in zip(panels, changes or [""], strict=True))
    return (
        '<section><h2>Held-out success</h2><div class="scroll"><table class="results"><thead><tr><th></th>'
        '<th>solved</th><th>success</th><th>95% interval</th><th class="whisker"><span>0%</span><span>100%</span></th>'
        f'{titles}</tr></thead><tbody>{rows}</tbody></table></div><p class="lead">{note}</p></section>'
    )


def _interval(panel: Panel) -> tuple[float, float]:
    return wilson(sum(panel.successes), len(panel.successes))


def _row(panel: Panel, change: str) -> str:
    low, high = _interval(panel)
    return (
        f'<tr><th scope="row">{escape(panel.label)}</th><td>{sum(panel.successes):,} of {len(panel.successes):,}</td>'
        f'<td><b>{percent(panel.rate)}</b></td><td>{100 * low:.1f} to {percent(high)}</td><td class="whisker">'
        f'<span class="track"><i style="left:{100 * low:.1f}%;right:{100 - 100 * high:.1f}%"></i>'
        f'<b style="left:{100 * panel.rate:.1f}%"></b></span></td>{change}</tr>'
    )


def _change(panel: Panel, before: Panel) -> str:
    gain = panel.gain_over(before)
    if gain is None:
        return '<td class="none">other tasks</td><td></td>'
    difference, low, high = gain
    tone = "gain" if low > 0 else "lose" if high < 0 else "none"
    change, interval = typeset(points(difference)), typeset(f"{points(low)} to {points(high)}")
    return f'<td class="{tone}">{change}</td><td>{interval}</td>'
