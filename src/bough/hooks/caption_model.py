"""A small linear model of short texts: scores from labels, or from comparisons."""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bough.tree import Floats, sigmoid


class Descent(Protocol):
    """Settings of gradient descent."""

    @property
    def steps(self) -> int:
        """Gradient steps, on all texts."""
        ...

    @property
    def learning_rate(self) -> float:
        """The learning rate."""
        ...


@dataclass(slots=True)
class CaptionModel:
    """A score for any text.

    Attributes:
        weight: [width + 1]: a weight for each word, by its hash, and a bias. Words with equal hashes share one.
    """

    weight: Floats

    @staticmethod
    def of(width: int) -> "CaptionModel":
        """A model with the score 0 for every text."""
        return CaptionModel(np.zeros(width + 1))

    def scores(self, captions: Sequence[str]) -> Floats:
        """[n]: the score of each text."""
        return self._features(captions) @ self.weight

    def learn_labels(self, captions: Sequence[str], labels: Floats, descent: Descent) -> None:
        """Logistic regression: the sigmoid of a score is the probability of label 1.

        Args:
            captions: n texts.
            labels: [n], in [0, 1].
            descent: Steps and learning rate.
        """
        self._descend(self._features(captions), labels, descent)

    def learn_pairs(self, better: Sequence[str], worse: Sequence[str], descent: Descent) -> None:
        """Bradley-Terry: the sigmoid of a difference of scores is the probability that the first text is better.

        Args:
            better: n texts.
            worse: n texts, each worse than the one of `better`.
            descent: Steps and learning rate.
        """
        self._descend(self._features(better) - self._features(worse), np.ones(len(better)), descent)

    def _descend(self, feature: Floats, target: Floats, descent: Descent) -> None:
        for _ in range(descent.steps if len(target) else 0):
            probability = sigmoid(feature @ self.weight)
            self.weight = self.weight + descent.learning_rate * feature.T @ (target - probability) / len(target)

    def _features(self, captions: Sequence[str]) -> Floats:
        """[n, width + 1]: the words of each text, of length 1, and a 1."""
        width = len(self.weight) - 1
        found = np.zeros((len(captions), width + 1))
        for row, caption in zip(found, captions, strict=True):
            for word in re.findall(r"\w+|[^\w\s]", caption.lower()):
                row[zlib.crc32(word.encode(errors="surrogatepass")) % width] += 1
            row[:width] /= max(1.0, float(np.linalg.norm(row)))
            row[width] = 1.0
        return found


@dataclass(slots=True)
class RunningScale:
    """Mean and standard deviation of all values so far.

    Attributes:
        count: Number of values.
        mean: Their mean.
        squares: The sum of their squared distances from it.
    """

    count: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: Floats) -> None:
        """Add values [n]."""
        if len(value):
            total, delta = self.count + len(value), float(value.mean()) - self.mean
            self.squares += float(((value - value.mean()) ** 2).sum()) + delta**2 * self.count * len(value) / total
            self.mean, self.count = self.mean + delta * len(value) / total, total

    def __call__(self, value: Floats) -> Floats:
        """[n]: the distance of each value from the mean, in standard deviations."""
        return (value - self.mean) / (np.sqrt(self.squares / max(1.0, self.count)) + 1e-8)
