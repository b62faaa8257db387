"""A forest read stretch by stretch, so that what is in memory at a time is one stretch, whatever size the trees have.

    forward    stretch 0, 1, 2, ...    each leaves the keys and values that later ones see
    backward   ..., 2, 1, 0            each leaves the gradient of the keys and values that it saw

Keys and values that a stretch sees from earlier ones are leaves of its graph. Their gradient is added to that of the
stretch that made them when its turn comes, so that all together is the gradient of one pass over the whole forest,
whatever the loss.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.batch.attention import Attend, Attention
from bough.batch.forest import Forest
from bough.batch.kept import Kept, Lesson
from bough.batch.stretch import Stretch
from bough.tree import Ints

Read: TypeAlias = Callable[[Tensor, Tensor, Attend], Tensor]
"""A model: (tokens [n], positions [n], attend) -> final hidden states [n, W]."""

Join: TypeAlias = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(layer, key [K, n, D], value [K, n, D]) -> the same with those of the past before them, [K, c + n, D] each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Page:
    """What a model makes of a stretch.

    Attributes:
        hidden: [m, W], the states from which m trained tokens are predicted.
        trained: [m] int64, which trained tokens of the batch these are.
    """

    hidden: Float[Tensor, "m W"]
    trained: Int[Tensor, " m"]


class Reading:
    """A model's way through a forest. The weights must not change on the way."""

    def __init__(self, read: Read, forest: Forest, max_tokens: int) -> None:
        """Get ready; nothing is read yet.

        Args:
            read: The model.
            forest: What is read.
            max_tokens: Most tokens of a stretch.
        """
        self._read, self._forest, self._max_tokens = read, forest, max_tokens
        self._stretches = forest.stretches(max_tokens)
        self._origin = forest.origin(self._stretches)
        self._kept = Kept(len(self._origin))

    def forward(self) -> Iterator[Page]:
        """Every stretch, first to last, without gradients."""
        for stretch in self._stretches:
            own, past = self._own(stretch), self._place(stretch.past)
            with torch.no_grad():
                page = self._page(stretch, partial(self._kept.pass_on, own, past))
            yield page

    def backward(self) -> Iterator[Page]:
        """Every stretch, last to first; go backward from the one that was given before asking for the next."""
        if len(self._origin) and not self._kept.keys:
            self._recall()
        for stretch in reversed(self._stretches):
            lesson = Lesson(self._kept, self._own(stretch), self._place(stretch.past))
            yield self._page(stretch, lesson.join)
            lesson.end()

    def _recall(self) -> None:
        """Read what is seen from a later stretch than its own, and nothing else."""
        forest = self._forest.take(self._origin)
        again = Reading(self._read, forest, self._max_tokens)
        # In that forest a token's place is where it is kept.
        again._origin, again._kept = np.arange(len(forest)), self._kept
        for _ in again.forward():
            pass

    def _page(self, stretch: Stretch, join: Join) -> Page:
        own, at, look = slice(stretch.first, stretch.last), self._forest.at, Attention(stretch)

        def attend(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            keys, values = join(layer, key, value)
            return look(query, keys, values, scale, window)

        hidden = self._read(self._forest.tokens[own], self._forest.position[own], attend)
        trained = np.flatnonzero((at >= stretch.first) & (at < stretch.last))
        device = hidden.device
        return Page(
            hidden=hidden[torch.as_tensor(at[trained] - stretch.first, device=device)],
            trained=torch.as_tensor(trained, device=device),
        )

    def _own(self, stretch: Stretch) -> tuple[Ints, Ints]:
        """Which of a stretch's tokens are kept, and where."""
        there = np.flatnonzero((self._origin >= stretch.first) & (self._origin < stretch.last))
        return self._origin[there] - stretch.first, there

    def _place(self, tokens: Ints) -> Ints:
        """Where tokens are kept."""
        return np.searchsorted(self._origin, tokens)
