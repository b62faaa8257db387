"""Filtered imitation: successful paths get 1, other paths are excluded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bough.credit import Credit
from bough.credit.success import ends_info, succeeded
from bough.tree import ANSWER, Bools, Credited, PathView, Rewarded, join, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Filtered imitation (ReST, arXiv 2308.08998; AlphaMath, 2405.03553): paths that succeed get 1, others 0.

    For losses that raise what gains (`Imitation`), each path that is kept counting once: where a token is shared with
    paths that are not, its positive advantage is the fraction of those that are. Of paths with returns 1, 1, 0, the
    first two kept:

        chains              1  1  0           a first turn that all share    2/3

    Paths that are not kept are left out of the batch, so that they do not count in the mean of the loss either; unless
    a value head learns from them, by the targets of another rule:
    `Filtered(value_targets=Searched(head="value"))` is AlphaMath's pair.

    Attributes:
        answer: Whether only the path that a search answers with is kept, if it succeeded.
        most: At most so many paths of a task, the shortest first, of equals the first; paths with the same words count
            as one. None for all.
        least: Return from which a path is good; None to take the environment's word for whether it succeeded.
        value_targets: The rule whose targets value heads learn; None for none.
    """

    answer: bool = False
    most: int | None = None
    least: float | None = None
    value_targets: Credit | None = None

    compares: ClassVar[Literal["nothing"]] = "nothing"

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise ValueError(f"Filtered.most: got {self.most}; need at least 1, or None")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = path_view(rewarded)
        kept = self.keeps(view)
        if self.value_targets is not None:
            found = spread_turns(view, kept[view.path].astype(np.float64))
            return [
                replace(each, value_targets=other.value_targets)
                for each, other in zip(found, self.value_targets(rewarded), strict=True)
            ]
        # Among the paths that are left nobody disagrees: what one of them does gets 1.
        good, parts = np.zeros(len(view.through), dtype=np.float64), view.by_fork
        good[parts.node[kept[parts.path]]] = 1.0
        found = spread_turns(parts, good[parts.node])
        out = view.leaf - view.offset[view.tree]
        return [replace(each, excluded_leaves=out[~kept & (view.tree == at)]) for at, each in enumerate(found)]

    def keeps(self, view: PathView) -> Bools:
        """[P] bool: which paths of a batch are kept."""
        kept = succeeded(view) if self.least is None else view.returns >= self.least
        if self.answer:
            kept &= _answers(view)
        if self.most is None:
            return kept
        words = _words(view)
        found: dict[int, set[bytes]] = {}
        order: list[int] = np.argsort(view.turns, kind="stable").tolist()
        for path in order:
            if not kept[path]:
                continue
            of_task = found.setdefault(int(view.task[path]), set())
            kept[path] = words[path] not in of_task and len(of_task) < self.most
            if kept[path]:
                of_task.add(words[path])
        return kept


def _answers(view: PathView) -> Bools:
    """[P] bool: whether a search answers with the end of a path."""
    return np.asarray([said is True for said in ends_info(view, ANSWER)], dtype=np.bool_)


def _words(view: PathView) -> list[bytes]:
    """For each path what was done on it, as bytes."""
    words, token = view.path_tokens, join(view.rewarded, "token")
    path = view.path[words.step]
    bounds = np.searchsorted(path, np.arange(view.paths + 1))
    spoken = np.stack([token[words.token].astype(np.int64), view.turn[words.step]], axis=-1)
    return [spoken[bounds[i] : bounds[i + 1]].tobytes() for i in range(view.paths)]
