"""The calibration report of a reward model, on tasks it was not trained on."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import get_args

import numpy as np

from bough.critics.reward_model.labels import LabelledSteps
from bough.tree import Bools, Floats, PathScore, path_score, sigmoid

BINS = 10
"""Bins of the reliability table, of equal width in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The steps whose probability is in [low, high).

    Attributes:
        low: Lower end; the last bin includes its upper end.
        high: Upper end.
        steps: Their number.
        predicted: Their mean probability.
        actual: Their mean label.
    """

    low: float
    high: float
    steps: int
    predicted: float
    actual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How well probabilities, order and ranking of a reward model fit held-out tasks; nan where nothing is measured.

    Attributes:
        tasks: Number of held-out tasks.
        steps: Number of labelled steps.
        error: Expected calibration error: mean over the steps of |mean probability - mean label| of their bins.
        table: The reliability table, without empty bins.
        pairs: Number of sibling pairs.
        pair_accuracy: Share of the pairs in which the better step has the higher score; a tie counts half.
        paths: Number of completions.
        success: Share of them that succeed.
        auc: By the score of a path, the area under its ROC curve: the probability that a success scores higher than a
            failure, a tie counts half.
    """

    tasks: int
    steps: int
    error: float
    table: tuple[Bin, ...]
    pairs: int
    pair_accuracy: float
    paths: int
    success: float
    auc: Mapping[str, float]

    def record(self) -> dict[str, object]:
        """The report as JSON data; nan becomes None."""
        found: dict[str, object] = asdict(self)
        for name in ("error", "pair_accuracy", "success"):
            found[name] = _finite(getattr(self, name))
        return found | {"auc": {name: _finite(value) for name, value in self.auc.items()}}

    def __str__(self) -> str:
        lines = [f"held out: {self.tasks} tasks, {self.steps} labelled steps, {self.paths} paths"]
        if self.steps:
            lines.append(f"expected calibration error {self.error:.4f}")
            lines.append("  probability      steps   predicted   actual")
            lines += [
                f"  {each.low:.1f} to {each.high:.1f} {each.steps:>12,} {each.predicted:>11.3f} {each.actual:>8.3f}"
                for each in self.table
            ]
        lines.append(
            f"pair accuracy: {self.pair_accuracy:.1%} of {self.pairs:,} sibling pairs"
            if self.pairs
            else "pair accuracy: no sibling pairs"
        )
        known = [f"{name} {value:.3f}" for name, value in self.auc.items() if not math.isnan(value)]
        about = f"ROC AUC of {self.paths:,} paths, of which {self.success:.1%} succeed, by their steps' "
        lines.append(about + ", ".join(known) if known else "ROC AUC: needs paths of both outcomes")
        return "\n".join(lines)


def calibrate(steps: LabelledSteps, probability: Floats) -> Calibration:
    """The report on steps with their probabilities [n]."""
    known = ~np.isnan(steps.label)
    table, error = reliability(probability[known], steps.label[known])
    margin = probability[steps.better] - probability[steps.worse]
    paths = len(steps.path_steps)
    scores: dict[PathScore, Floats] = {
        by: np.asarray([path_score([float(probability[i]) for i in each], by) for each in steps.path_steps])
        for by in get_args(PathScore)
    }
    return Calibration(
        tasks=len({*steps.task.tolist()}),
        steps=int(known.sum()),
        error=error,
        table=table,
        pairs=len(margin),
        pair_accuracy=float(((margin > 0) + 0.5 * (margin == 0)).mean()) if len(margin) else math.nan,
        paths=paths,
        success=float(steps.success.mean()) if paths else math.nan,
        auc={by: roc_auc(score, steps.success) for by, score in scores.items()},
    )


def reliability(probability: Floats, label: Floats) -> tuple[tuple[Bin, ...], float]:
    """The reliability table without empty bins, and the expected calibration error; nan without a step.

    Probabilities .95, .85, .15, .05 and labels 1, 1, 0, 1: the bins are .05, .15, .15 and .95 off, so .325.
    """
    place = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    table: list[Bin] = []
    for number in range(BINS):
        inside = place == number
        if inside.any():
            predicted, actual = float(probability[inside].mean()), float(label[inside].mean())
            low, high = number / BINS, (number + 1) / BINS
            table.append(Bin(low=low, high=high, steps=int(inside.sum()), predicted=predicted, actual=actual))
    if not table:
        return (), math.nan
    return tuple(table), sum(each.steps * abs(each.predicted - each.actual) for each in table) / len(label)


def roc_auc(score: Floats, success: Bools) -> float:
    """The probability that a success scores higher than a failure, a tie counts half; nan without both."""
    good, bad = np.sort(score[success]), score[~success]
    if not len(good) or not len(bad):
        return math.nan
    higher = len(good) - np.searchsorted(good, bad, side="right")
    equal = np.searchsorted(good, bad, side="right") - np.searchsorted(good, bad, side="left")
    return float((higher + 0.5 * equal).sum() / (len(good) * len(bad)))


def platt(score: Floats, label: Floats, steps: int = 50, ridge: float = 1e-3) -> tuple[float, float]:
    """Scale and shift for which sigmoid(scale * score + shift) fits the labels best (Platt, 1999); 1 and 0 without one.

    A ranker's scores have no zero and no unit; this gives them both. Newton's method with a small `ridge` toward 1
    and 0, so that separable labels stay finite.
    """
    if not len(score):
        return 1.0, 0.0
    design = np.stack([score, np.ones_like(score)], axis=1)
    start = np.asarray([1.0, 0.0])
    weight = start.copy()
    for _ in range(steps):
        probability = sigmoid(design @ weight)
        gradient = design.T @ (probability - label) / len(label) + ridge * (weight - start)
        curvature = (design * (probability * (1 - probability))[:, None]).T @ design / len(label) + ridge * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        # Newton's step is shortened where the score is far from linear.
        weight -= step / max(1.0, float(np.abs(step).max()))
    return float(weight[0]), float(weight[1])


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
