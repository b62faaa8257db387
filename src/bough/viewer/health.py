"""The health of a run, from its files, in sentences."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from bough.store import RunDirectory, StepLines

Lines: TypeAlias = Sequence[Mapping[str, Any]]

RECENT = 10
"""Steps whose mean is shown as the present value."""

STAGES = ("grow", "appraise", "credit", "learn", "sync", "evaluate")
"""The timed stages of a step, in order."""

MOST_CAUSES = 30
"""Causes of failed episodes that are listed, the most frequent first."""


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
        about="The share of tasks in which no token has an advantage: all their episodes earn the same, and nothing is "
        "learned from them. It does not depend on filters.",
        action="Nothing is learned from over half of the episodes: take tasks of another difficulty, more episodes a "
        "task (explorer.n), or a graded reward.",
        metrics=("groups/without_signal",),
        of="groups/total",
        most=0.5,
        unit="%",
    ),
    Sign(
        title="Groups that filters dropped",
        about="The share of tasks that a filter left out of the update.",
        action="Over half of the tasks are left out: look at the filters, or take tasks of another difficulty.",
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
        title="Malformed calls",
        about="The share of calls of tools that could not be read: no tool runs, and the policy reads why.",
        action="Over a tenth can't be read: more demonstrations, or a grammar (parser='ToolCalls(grammar=true)').",
        metrics=("calls/malformed",),
        of="calls/total",
        most=0.1,
        unit="%",
    ),
    Sign(
        title="Episodes without a call",
        about="The share of episodes with tools in which the policy called none.",
        action="Over half call no tool: more demonstrations, tasks that need a tool, or a model that calls tools.",
        metrics=("calls/missing",),
        of="train/paths",
        most=0.5,
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
        action="Mend the causes, which stand below the signs.",
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
    Sign(
        title="Memory of an update",
        about="The most memory that PyTorch had in use during an update, in GiB.",
        action="It grew by half: episodes have become longer; set optimizer.memory_gib, or lower limits.turns.",
        metrics=("memory/peak_gib",),
        rises=1.5,
    ),
)


def health(directory: RunDirectory, lines: Lines) -> dict[str, object]:
    """The health of a run.

        alarms   what the terminal reported, the newest first, each kind once: first and last step, times, and the
                 sentences of `Alarm`
        signs    those out of bounds first; see `Sign`
        faults   the causes of failed episodes: the number of episodes, and the last step
        stages   the seconds of each stage by step, and their sums over the whole run

    Args:
        directory: The run's folder.
        lines: The rows of its metrics.
    """
    learned = [line for line in lines if line.get("phase") == "rl"]
    signs = [record for sign in SIGNS if (record := sign.record(learned))]
    by_step = {stage: [line.get(f"time/{stage}_s") for line in learned] for stage in STAGES}
    spent = {stage: sum(seconds(line, stage) for line in lines) for stage in STAGES}
    return {
        "alarms": alarms(directory),
        "signs": sorted(signs, key=lambda each: not each["action"]),
        "faults": _faults(StepLines(directory.faults).read()),
        "stages": {"steps": [line["step"] for line in learned], "seconds": by_step, "total": spent},
    }


def seconds(line: Mapping[str, Any], stage: str) -> float:
    """The seconds of a stage in a row of metrics; 0 where it did not run."""
    value = line.get(f"time/{stage}_s")
    return float(value) if isinstance(value, int | float) else 0.0


def alarms(directory: RunDirectory) -> list[dict[str, object]]:
    """What a run warned of, one alarm a kind, the newest first; see `health`."""
    of_kind: dict[str, list[Mapping[str, Any]]] = {}
    for record in StepLines(directory.alarms).read():
        of_kind.setdefault(str(record.get("kind")), []).append(record)
    newest = sorted(of_kind.values(), key=lambda each: -each[-1]["step"])
    return [{**each[-1], "first": each[0]["step"], "times": len(each)} for each in newest]


def _faults(records: Lines) -> list[dict[str, object]]:
    """The causes of failed episodes, the most frequent first."""
    count: Counter[str] = Counter()
    last: dict[str, int] = {}
    for record in records:
        for cause, number in cast("Mapping[str, int]", record.get("faults", {})).items():
            count[cause] += number
            last[cause] = record["step"]
    most = count.most_common(MOST_CAUSES)
    return [{"cause": cause, "episodes": number, "last": last[cause]} for cause, number in most]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
