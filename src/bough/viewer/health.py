"""The health of a run, from its metrics, in sentences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bough.view import rising_rewards

Lines: TypeAlias = Sequence[Mapping[str, Any]]

RECENT = 10
"""Steps whose mean is shown as the present value."""

STAGES = ("grow", "appraise", "credit", "learn", "sync", "evaluate")
"""The timed stages of a step, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A number that a healthy run keeps within bounds.

    Attributes:
        title: What it is.
        about: What it means, in a sentence.
        action: What to do where it is out of bounds.
        metrics: The metrics whose sum it is.
        of: The metric by which the sum is divided; "" for none.
        least, most: The bounds of the present value.
        falls, rises: The same as multiples of the value of the first steps.
        unit: "%" for a share; "" for a number.
        counted: Whether a run with 0 in every step has no such sign: no filter counts there, or there was none.
    """

    title: str
    about: str
    action: str
    metrics: tuple[str, ...]
    of: str = ""
    least: float = -math.inf
    most: float = math.inf
    falls: float = -math.inf
    rises: float = math.inf
    unit: str = ""
    counted: bool = False

    def record(self, lines: Lines) -> dict[str, object] | None:
        """The sign as JSON data with its curve; None for a run without its metrics."""
        points: list[tuple[int, float]] = []
        for line in lines:
            numbers = [float(each) for name in self.metrics if isinstance(each := line.get(name), int | float)]
            whole = line.get(self.of) if self.of else 1.0
            if len(numbers) == len(self.metrics) and isinstance(whole, int | float) and whole:
                points.append((line["step"], sum(numbers) / whole))
        if not points or (self.counted and not any(number for _, number in points)):
            return None
        values = [number for _, number in points]
        first, now = _mean(values[:RECENT]), _mean(values[-RECENT:])
        return {
            "title": self.title,
            "about": self.about,
            "action": "" if self._in_bounds(now, first) else self.action,
            "metrics": [*self.metrics],
            "unit": self.unit,
            "first": first,
            "now": now,
            "steps": [step for step, _ in points],
            "values": values,
        }

    def _in_bounds(self, now: float, first: float) -> bool:
        low, high = (bound * first if math.isfinite(bound) else bound for bound in (self.falls, self.rises))
        return max(self.least, low) <= now <= min(self.most, high)


SIGNS = (
    Sign(
        title="Entropy",
        about="How undecided the policy is at a token, in nats. It falls as the policy learns; at 0 all attempts of a "
        "task are equal, and nothing more is learned.",
        action="It is under a fifth of what it was: raise sampling.temperature, lower optimizer.learning_rate, "
        "or add a divergence (regularizers).",
        metrics=("policy/entropy",),
        falls=0.2,
    ),
    Sign(
        title="Groups without a signal",
        about="The share of tasks whose attempts all earn the same. They teach nothing.",
        action="Over half of the attempts teach nothing: take tasks of another difficulty, more paths a task "
        "(explorer.n), or a graded reward.",
        metrics=("groups/dropped",),
        of="groups/total",
        most=0.5,
        unit="%",
        counted=True,
    ),
    Sign(
        title="Clipped tokens",
        about="The share of the tokens whose ratio to the sampling policy reached the clip of the loss.",
        action="Over a fifth is clipped: fewer optimizer.epochs or minibatches, or a lower optimizer.learning_rate.",
        metrics=("policy/clip_high", "policy/clip_low"),
        most=0.2,
        unit="%",
    ),
    Sign(
        title="Difference of engine and learner",
        about="Mean difference of the log-probabilities that engine and learner have of the same tokens, in nats: "
        "rounding, where both compute the same policy.",
        action="The two compute different policies: compare their dtypes, and whether the model is supported.",
        metrics=("policy/gap",),
        most=0.05,
    ),
    Sign(
        title="Actions with the right form",
        about="The share of actions that the environment recognised.",
        action="Over a tenth is not recognised: more demonstrations, examples in the prompt, or a grammar "
        "(parser='ToolCalls(grammar=true)').",
        metrics=("train/valid_actions",),
        least=0.9,
        unit="%",
    ),
    Sign(
        title="Actions cut off",
        about="The share of actions that reached sampling.max_tokens before their end.",
        action="Over a tenth is cut: raise sampling.max_tokens, or warm up longer.",
        metrics=("train/cut_actions",),
        most=0.1,
        unit="%",
    ),
    Sign(
        title="Calls in another format",
        about="Calls of tools that look like those of another family of models: the policy gets no result for them.",
        action="Set policy.call_format to the family's format.",
        metrics=("calls/foreign",),
        most=0.0,
        counted=True,
    ),
    Sign(
        title="Failed episodes",
        about="Episodes that an error of the environment, a deadline or an engine ended; they are not trained on.",
        action="Read the faults: the page Episodes has them under the outcome `failed`.",
        metrics=("paths/failed",),
        most=0.0,
        counted=True,
    ),
    Sign(
        title="Size of the gradient",
        about="The norm of the gradient before it is clipped to optimizer.clip_norm.",
        action="It is ten times what it was: lower optimizer.learning_rate.",
        metrics=("optimizer/gradient_norm",),
        rises=10.0,
    ),
    Sign(
        title="Memory",
        about="Memory of the process, in GiB.",
        action="It grew by half: look for what the environment or a hook keeps.",
        metrics=("memory/process_gib",),
        rises=1.5,
    ),
)


def health(lines: Lines, window: int) -> dict[str, object]:
    """The signs of a run, those out of bounds first, its alarms, and the seconds of each stage by step.

    Args:
        lines: The rows of its metrics.
        window: Steps over which rewards and success are compared, `health.reward_window`.
    """
    learned = [line for line in lines if line.get("phase") == "rl"]
    signs = [record for sign in SIGNS if (record := sign.record(learned))]
    known = [{name: value for name, value in line.items() if value is not None} for line in learned]
    return {
        "alarms": [*map(str, rising_rewards(known, window))],
        "signs": sorted(signs, key=lambda each: not each["action"]),
        "stages": {
            "steps": [line["step"] for line in learned],
            **{stage: [line.get(f"time/{stage}_s") for line in learned] for stage in STAGES},
        },
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
