"""A small linear model of short texts: scores from labels, or from comparisons."""

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree import Floats, sigmoid


class CaptionModel:
    """A score for any text: a weight for each word, by its hash, and a bias."""

    def __init__(self, width: int, learning_rate: float) -> None:
        """Start with the score 0 for every text.

        Args:
            width: Number of weights besides the bias; words with equal hashes share one.
            learning_rate: Of gradient descent.
        """
        self.weight: Floats = np.zeros(width + 1)
        self._width, self._learning_rate = width, learning_rate

    def scores(self, captions: Sequence[str]) -> Floats:
        """[n]: the score of each text."""
        return self._features(captions) @ self.weight

    def learn_labels(self, captions: Sequence[str], labels: Floats, steps: int) -> None:
        """Logistic regression: the sigmoid of a score is the probability of label 1.

        Args:
            captions: n texts.
            labels: [n], in [0, 1].
            steps: Gradient steps, on all texts.
        """
        self._descend(self._features(captions), labels, steps)

    def learn_pairs(self, better: Sequence[str], worse: Sequence[str], steps: int) -> None:
        """Bradley-Terry: the sigmoid of a difference of scores is the probability that the first text is better.

        Args:
            better: n texts.
            worse: n texts, each worse than the one of `better`.
            steps: Gradient steps, on all pairs.
        """
        self._descend(self._features(better) - self._features(worse), np.ones(len(better)), steps)

    def _descend(self, feature: Floats, target: Floats, steps: int) -> None:
        for _ in range(steps if len(target) else 0):
            probability = sigmoid(feature @ self.weight)
            self.weight = self.weight + self._learning_rate * feature.T @ (target - probability) / len(target)

    def _features(self, captions: Sequence[str]) -> Floats:
        """[n, width + 1]: the words of each text, of length 1, and a 1."""
        found = np.zeros((len(captions), self._width + 1))
        for row, caption in zip(found, captions, strict=True):
            for word in re.findall(r"\w+|[^\w\s]", caption.lower()):
                row[zlib.crc32(word.encode(errors="surrogatepass")) % self._width] += 1
            row[: self._width] /= max(1.0, float(np.linalg.norm(row)))
            row[self._width] = 1.0
        return found


class RunningScale:
    """Mean and standard deviation of all values so far."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0.0, 0.0, 0.0

    def add(self, value: Floats) -> None:
        """Add values [n]."""
        if len(value):
            total, delta = self.count + len(value), float(value.mean()) - self.mean
            self.squares += float(((value - value.mean()) ** 2).sum()) + delta**2 * self.count * len(value) / total
            self.mean, self.count = self.mean + delta * len(value) / total, total

    def __call__(self, value: Floats) -> Floats:
        """[n]: the distance of each value from the mean, in standard deviations."""
        return (value - self.mean) / (np.sqrt(self.squares / max(1.0, self.count)) + 1e-8)

    def state(self) -> NDArray[Any]:
        """The three numbers."""
        return np.asarray([self.count, self.mean, self.squares])

    def load_state(self, state: Mapping[str, NDArray[Any]], name: str) -> None:
        """Restore the result of `state`, stored as `name`."""
        self.count, self.mean, self.squares = (float(each) for each in state[name])
