"""A forest read stretch by stretch, so that what is in memory at a time is one stretch, whatever size the trees have.

    forward    stretch 0, 1, 2, ...    each leaves the keys and values that later ones see
    backward   ..., 2, 1, 0            each leaves the gradient of the keys and values that it saw

Keys and values that a stretch sees from earlier ones are leaves of its graph. Their gradient is added to that of the
stretch that made them when its turn comes, so that all together is the gradient of one pass over the whole forest,
whatever the loss.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.batch.attention import Attend, Attention
from bough.batch.forest import Forest
from bough.batch.kept import Kept, Lesson, Past
from bough.batch.stretch import Stretch
from bough.tree import Ints

Read: TypeAlias = Callable[[Tensor, Tensor, Attend, Tensor | None, Attend | None], Tensor]
"""A model: (tokens [n], positions [n], attend, wanted [u] or None, last) -> final hidden states [n, W], or [u, W].

`last` may attend in the last layer, and answers for those wanted alone."""

FEW = 0.8
"""At most this share of a stretch's tokens is read apart from the others in the last layer: it costs their queries,
keys and values once more."""


def spared(tokens: int, trained: int) -> int:
    """How many of a stretch's tokens are not read to the end, as nothing is predicted after them."""
    return tokens - max(trained, 1) if max(trained, 1) <= FEW * tokens else 0


Recall: TypeAlias = Callable[[int, Tensor, Tensor], Past | None]
"""(layer, key [K, n, D], value [K, n, D]), of a stretch -> those of its past."""


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
    """A model's way through a forest. The weights must not change on the way.

    Attributes:
        chapters: What is read.
    """

    def __init__(
        self,
        read: Read,
        forest: Forest,
        max_tokens: int,
        chapters: Sequence[Sequence[Stretch]] | None = None,
    ) -> None:
        """Get ready; nothing is read yet.

        Args:
            read: The model.
            forest: What is read.
            max_tokens: Most tokens of a stretch.
            chapters: Which of the forest's chapters; None is all.
        """
        self._read, self._forest, self._max_tokens = read, forest, max_tokens
        self.chapters = forest.chapters(max_tokens) if chapters is None else chapters

    def forward(self) -> Iterator[Page]:
        """Every stretch, first to last, without gradients."""
        for stretches in self.chapters:
            yield from self._forward(stretches, _Shelf(self._forest.origin(stretches)))

    def backward(self) -> Iterator[Page]:
        """Every stretch, last to first; go backward from the one that was given before asking for the next."""
        for stretches in reversed(self.chapters):
            shelf = self._recall(self._forest.origin(stretches))
            lesson: Lesson | None = None
            for stretch in reversed(stretches):
                lesson = Lesson(shelf.kept, shelf.own(stretch), shelf.place(stretch.past), lesson)
                yield self._page(stretch, lesson.past)
                lesson.end()

    def _forward(self, stretches: Sequence[Stretch], shelf: "_Shelf", *, predicts: bool = True) -> Iterator[Page]:
        for stretch in stretches:
            own, past = shelf.own(stretch), shelf.place(stretch.past)
            with torch.no_grad():
                page = self._page(stretch, partial(shelf.kept.pass_on, own, past), predicts=predicts)
            yield page

    def _recall(self, origin: Ints) -> "_Shelf":
        """Read these tokens of a chapter, and nothing else."""
        shelf = _Shelf(origin)
        if len(origin):
            again = Reading(self._read, self._forest.take(origin), self._max_tokens)
            # In that forest a token's place is where it is kept, and every token is.
            whole = _Shelf(np.arange(len(origin)), shelf.kept)
            for stretches in again.chapters:
                for _ in again._forward(stretches, whole, predicts=False):
                    pass
        return shelf

    def _page(self, stretch: Stretch, recall: Recall, *, predicts: bool = True) -> Page:
        own, at, look = slice(stretch.first, stretch.last), self._forest.at, Attention(stretch)

        def attend(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            return look(query, key, value, scale, window, recall(layer, key, value))

        def keep(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            """Nobody asks for more than keys and values."""
            del scale, window
            recall(layer, key, value)
            return query[:, :1]

        tokens, position = self._forest.tokens[own], self._forest.position[own]
        trained = np.flatnonzero((at >= stretch.first) & (at < stretch.last))
        # After a token there may be several that are trained.
        once, rows = np.unique(at[trained] - stretch.first, return_inverse=True)
        few = spared(len(stretch), len(once)) > 0
        # Layers want one token at least.
        wanted = torch.as_tensor(once if len(once) else [len(stretch) - 1], device=tokens.device) if few else None
        hidden = self._read(tokens, position, attend, wanted, None if predicts else keep)
        at_rows = torch.as_tensor(rows if few else once[rows], device=tokens.device)
        return Page(hidden=hidden[at_rows], trained=torch.as_tensor(trained, device=tokens.device))


class _Shelf:
    """Keys and values of the tokens of a chapter that are seen from a later stretch than their own."""

    def __init__(self, origin: Ints, kept: Kept | None = None) -> None:
        """For the tokens `origin` [L] of the forest, ascending; nothing is kept yet, unless it is given."""
        self._origin = origin
        self.kept = Kept(len(origin)) if kept is None else kept

    def own(self, stretch: Stretch) -> tuple[Ints, Ints]:
        """Which of a stretch's tokens are kept, and where."""
        there = np.flatnonzero((self._origin >= stretch.first) & (self._origin < stretch.last))
        return self._origin[there] - stretch.first, there

    def place(self, tokens: Ints) -> Ints:
        """Where tokens are kept."""
        return np.searchsorted(self._origin, tokens)
