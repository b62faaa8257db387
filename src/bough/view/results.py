"""Held-out results before and after training: the tables and the headline of a report."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bough.view.interval import mean_interval, paired, wilson
from bough.view.numbers import percent, points, short

CHANGES = ("change", "95% interval")
"""Titles of the columns of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The result of a policy on a set of held-out tasks, one path each.

    Attributes:
        label: Time of the evaluation: "untrained", "after warm-up", "after training".
        task_ids: The tasks.
        successes: Whether each was solved.
        rewards: By task, the reward of its path; empty when unknown.
        graded: Whether rewards have more values than success, see `HeldoutResult.graded`.

    Raises:
        ValueError: when there is no task, the two differ in length, or a task occurs twice.
    """

    label: str
    task_ids: tuple[str, ...]
    successes: tuple[bool, ...]
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    graded: bool = False

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

    @property
    def reward(self) -> float:
        """Mean reward of a path; nan without rewards."""
        return math.fsum(self.rewards.values()) / len(self.rewards) if self.rewards else math.nan

    def gain_over(self, earlier: "Panel") -> tuple[float, float, float] | None:
        """Difference of rates and its paired interval, (difference, low, high); None when the tasks differ."""
        if set(self.task_ids) != set(earlier.task_ids):
            return None
        was = dict(zip(earlier.task_ids, earlier.successes, strict=True))
        return self.rate - earlier.rate, *paired([was[task] for task in self.task_ids], self.successes)

    def reward_gain_over(self, earlier: "Panel") -> tuple[float, float, float] | None:
        """Difference of mean rewards and its paired interval; None when the tasks differ."""
        if self.rewards.keys() != earlier.rewards.keys():
            return None
        changes = [self.rewards[task] - earlier.rewards[task] for task in self.rewards]
        return self.reward - earlier.reward, *mean_interval(changes)


def headline(panels: Sequence[Panel]) -> str:
    """The result in a sentence or two: the last panel against the one before, graded rewards before success.

    Rewards are left out where each path has 1 for success and 0 otherwise.
    """
    if not panels:
        return "No held-out tasks were evaluated."
    shown = panels[-2:]
    if not _shows_rewards(shown):
        return _success(shown)
    return " ".join((_reward(shown), _success(shown)) if _is_graded(shown) else (_success(shown), _reward(shown)))


def _is_graded(panels: Sequence[Panel]) -> bool:
    return any(each.graded for each in panels)


def _shows_rewards(panels: Sequence[Panel]) -> bool:
    """Whether the rewards have more to show than success."""
    return all(each.rewards for each in panels) and not all(
        each.rewards == dict(zip(each.task_ids, map(float, each.successes), strict=True)) for each in panels
    )


def _success(panels: Sequence[Panel]) -> str:
    last = panels[-1]
    if len(panels) == 1:
        low, high = _interval(last)
        return (
            f"Held-out success is {percent(last.rate)} {last.label}, 95% interval {percent(low)} to {percent(high)}, "
            f"on {len(last.task_ids):,} tasks."
        )
    before = panels[0]
    ends = f"from {percent(before.rate)} {before.label} to {percent(last.rate)} {last.label}"
    return _changed("success", ends, last.gain_over(before), len(last.task_ids), points, " points")


def _reward(panels: Sequence[Panel]) -> str:
    last = panels[-1]
    if len(panels) == 1:
        low, high = mean_interval([*last.rewards.values()])
        return (
            f"Held-out reward is {short(last.reward)} {last.label}, 95% interval {short(low)} to {short(high)}, "
            f"on {len(last.rewards):,} tasks."
        )
    before = panels[0]
    ends = f"from {short(before.reward)} {before.label} to {short(last.reward)} {last.label}"
    return _changed("reward", ends, last.reward_gain_over(before), len(last.rewards), _change_of_reward, "")


def _change_of_reward(value: float) -> str:
    return f"{value:+.3g}"


def _changed(
    what: str,
    ends: str,
    gain: tuple[float, float, float] | None,
    tasks: int,
    write: Callable[[float], str],
    unit: str,
) -> str:
    """The change of a number, with its interval."""
    if gain is None:
        return f"Held-out {what} went {ends}, on different tasks."
    difference, low, high = gain
    verb = "rose" if low > 0 else "fell" if high < 0 else "went"
    doubt = "" if verb != "went" else " This could be chance."
    return (
        f"Held-out {what} {verb} {ends}: {write(difference)}{unit}, 95% interval {write(low)} to {write(high)}, "
        f"on {tasks:,} tasks.{doubt}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table of held-out results as texts, a row a panel.

    Attributes:
        title: Its title.
        head: The titles of the columns.
        rows: The cells.
        note: How the intervals are computed.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def results(panels: Sequence[Panel]) -> list[ResultTable]:
    """The tables of panels, with intervals, and the change from each to the next; empty without panels."""
    if not panels:
        return []
    success = _success_table(panels)
    if not _shows_rewards(panels):
        return [success]
    return [_reward_table(panels), success] if _is_graded(panels) else [success, _reward_table(panels)]


def _reward_table(panels: Sequence[Panel]) -> ResultTable:
    gains = [after.reward_gain_over(before) for before, after in pairwise(panels)]
    rows: list[tuple[str, ...]] = []
    for panel, change in zip(panels, _changes(gains, _change_of_reward), strict=True):
        low, high = mean_interval([*panel.rewards.values()])
        rows.append((panel.label, short(panel.reward), f"{short(low)} to {short(high)}", *change))
    return ResultTable(
        title="Held-out reward",
        head=("", "mean", "95% interval", *CHANGES),
        rows=tuple(rows),
        note="Reward of an episode, the sum of its channels. Intervals are Student's t; those of changes are of the "
        "differences on the same tasks.",
    )


def _success_table(panels: Sequence[Panel]) -> ResultTable:
    gains = [after.gain_over(before) for before, after in pairwise(panels)]
    rows: list[tuple[str, ...]] = []
    for panel, change in zip(panels, _changes(gains, points), strict=True):
        low, high = _interval(panel)
        solved = f"{sum(panel.successes):,} of {len(panel.successes):,}"
        rows.append((panel.label, solved, percent(panel.rate), f"{100 * low:.1f} to {percent(high)}", *change))
    return ResultTable(
        title="Held-out success",
        head=("", "solved", "success", "95% interval", *CHANGES),
        rows=tuple(rows),
        note="Intervals of rates are Wilson's. Changes are from the row above, in points, on the same tasks, with "
        "Newcombe's interval for paired proportions.",
    )


def _interval(panel: Panel) -> tuple[float, float]:
    return wilson(sum(panel.successes), len(panel.successes))


def _changes(
    gains: Sequence[tuple[float, float, float] | None], write: Callable[[float], str]
) -> list[tuple[str, str]]:
    """The change before each row, with its interval; none before the first."""
    cells = [("\u2013", "")]
    for gain in gains:
        difference, low, high = gain or (math.nan, math.nan, math.nan)
        cells.append((write(difference), f"{write(low)} to {write(high)}") if gain else ("other tasks", ""))
    return cells
