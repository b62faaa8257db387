"""Held-out results before and after training: the table and the headline of a report."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from bough.view.interval import mean_interval, paired, wilson
from bough.view.numbers import percent, points, short, typeset


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


def results(panels: Sequence[Panel]) -> str:
    """The tables of panels, with intervals, and the change from each to the next; empty without panels."""
    if not panels:
        return ""
    success, reward = _success_table(panels), _reward_table(panels) if _shows_rewards(panels) else ""
    return reward + success if _is_graded(panels) else success + reward


def _reward_table(panels: Sequence[Panel]) -> str:
    gains = [after.reward_gain_over(before) for before, after in pairwise(panels)]
    changes = ['<td class="none">\u2013</td><td></td>', *(_change(gain, _change_of_reward) for gain in gains)]
    rows = ""
    for panel, change in zip(panels, changes, strict=True):
        low, high = mean_interval([*panel.rewards.values()])
        mean, interval = typeset(short(panel.reward)), typeset(f"{short(low)} to {short(high)}")
        rows += f'<tr><th scope="row">{escape(panel.label)}</th><td><b>{mean}</b></td><td>{interval}</td>{change}</tr>'
    return (
        '<section><h2>Held-out reward</h2><div class="scroll"><table class="results"><thead><tr><th></th>'
        "<th>mean</th><th>95% interval</th><th>change</th><th>95% interval</th>"
        f'</tr></thead><tbody>{rows}</tbody></table></div><p class="lead">Reward of an episode, the sum of its '
        "channels. Intervals are Student's t; those of changes are of the differences on the same tasks.</p></section>"
    )


def _success_table(panels: Sequence[Panel]) -> str:
    changes = [_change(after.gain_over(before), points) for before, after in pairwise(panels)]
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


def _change(gain: tuple[float, float, float] | None, write: Callable[[float], str]) -> str:
    if gain is None:
        return '<td class="none">other tasks</td><td></td>'
    difference, low, high = gain
    tone = "gain" if low > 0 else "lose" if high < 0 else "none"
    change, interval = typeset(write(difference)), typeset(f"{write(low)} to {write(high)}")
    return f'<td class="{tone}">{change}</td><td>{interval}</td>'
