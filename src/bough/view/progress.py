"""The progress of a run, for the live display."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

RECENT_STEPS = 20
RECENT_MESSAGES = 4

PLAIN = {
    "reward/mean": "reward",
    "loss/total": "loss",
    "policy/entropy": "entropy",
    "policy/kl_behaviour": "kl",
    "speed/tokens_per_s": "tokens/s",
}
"""The metrics shown as values, with their labels."""

SHARES = (
    ("train/failed", "failed", 0.0),
    ("train/cut_actions", "cut off", 0.0),
    ("train/valid_actions", "valid", 1.0),
)
"""Rates shown when they differ from their normal value: metric, label, normal value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress after a step.

    Attributes:
        step: Finished steps of the run; epochs of the warm-up are steps.
        steps: Total steps of the run.
        metrics: Values by name, such as "train/success"; missing ones are not shown.
        phase: The phase: "warmup", "start" for the evaluation before the first step, "rl".
        ends: The last step of the phase; None for that of the run.
    """

    step: int
    steps: int
    metrics: Mapping[str, int | float]
    phase: str = ""
    ends: int | None = None

    @property
    def counted(self) -> str:
        """The step, with the phase where it is the warm-up: "step 2/9 (warm-up)"."""
        return f"step {self.step}/{self.steps}" + (" (warm-up)" if self.phase == "warmup" else "")

    @property
    def left(self) -> int:
        """Steps to the end of the phase."""
        return (self.steps if self.ends is None else self.ends) - self.step


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The progress until now.

    Attributes:
        last: The newest progress; None before the first.
        at_s: Time of the newest progress, on the display's clock.
        recent_s: Durations of the last steps of this phase, newest last.
        newest: For each metric its newest value, and the step.
        spent_s: The sum of each `time/NAME_s` over the steps, without those of a part of a stage, `time/NAME/PART_s`.
        messages: The last messages, newest last.
    """

    at_s: float
    last: Progress | None = None
    recent_s: tuple[float, ...] = ()
    newest: Mapping[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    spent_s: Mapping[str, float] = field(default_factory=dict[str, float])
    messages: tuple[str, ...] = ()

    def after(self, progress: Progress, now_s: float) -> "Told":
        """A copy with one more step."""
        same_phase = self.last is not None and self.last.phase == progress.phase
        told = {name: (float(value), progress.step) for name, value in progress.metrics.items()}
        spent = dict(self.spent_s)
        for name, value in progress.metrics.items():
            if name.startswith("time/") and name.count("/") == 1:
                stage = name.removeprefix("time/").removesuffix("_s")
                spent[stage] = spent.get(stage, 0.0) + value
        return replace(
            self,
            last=progress,
            at_s=now_s,
            recent_s=(*self.recent_s, now_s - self.at_s)[-RECENT_STEPS:] if same_phase else (),
            newest={**self.newest, **told},
            spent_s=spent,
        )

    def saying(self, text: str) -> "Told":
        """A copy with one more message."""
        return replace(self, messages=(*self.messages, text)[-RECENT_MESSAGES:])

    def left_s(self, now_s: float) -> float | None:
        """Seconds to the end of the phase, from the mean of the last steps; None before two and after the last."""
        if self.last is None or not self.recent_s or not self.last.left:
            return None
        mean_s = sum(self.recent_s) / len(self.recent_s)
        return max(0.0, self.last.left * mean_s - (now_s - self.at_s))

    def value(self, name: str) -> float | None:
        """The newest value of a metric."""
        return self.newest[name][0] if name in self.newest else None


def interval(told: Told) -> str:
    """The interval of the newest held-out success, " (46.0-56.3)"; empty without one."""
    low, high = told.value("heldout/low"), told.value("heldout/high")
    return f" ({100 * low:.1f}-{100 * high:.1f})" if low is not None and high is not None else ""
