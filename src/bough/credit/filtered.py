"""Learning from what went well, and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bough.credit import Credit
from bough.credit.success import ends_info, succeeded
from bough.tree import ANSWER, Bools, Credited, Rewarded, Steps, join, spread_steps, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Filtered imitation (ReST, arXiv 2308.08998; AlphaMath, 2405.03553): paths that succeed get 1, others 0.

    For losses that raise what gains (`Imitation`), each path that is kept counting once: where a token is shared with
    paths that are not, its gain is the share of those that are. Of paths with returns 1, 1, 0, the first two kept:

        chains              1  1  0           a first turn that all share    2/3

    Paths that are not kept are left out of the batch, so that they do not count in the mean of the loss either; unless
    a value head learns from them, by the goals of another rule: `Filtered(goals=Searched(head="value"))` is AlphaMath's
    pair of targets.

    Attributes:
        answer: Whether only the path that a search answers with is kept, if it succeeded.
        most: At most so many paths of a task, the shortest first, of equals the first; paths with the same words count
            as one. None for all.
        least: Return from which a path is good; None to take the environment's word for whether it succeeded.
        goals: The rule whose goals value heads learn; None for none.
    """

    answer: bool = False
    most: int | None = None
    least: float | None = None
    goals: Credit | None = None

    compares: ClassVar[Literal["nothing"]] = "nothing"

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise ValueError(f"Filtered.most: got {self.most}; need at least 1, or None")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = steps(rewarded)
        kept = self.keeps(view)
        if self.goals is not None:
            found = spread_steps(view, kept[view.path].astype(np.float64))
            return [replace(each, goals=other.goals) for each, other in zip(found, self.goals(rewarded), strict=True)]
        # Among the paths that are left nobody disagrees: what one of them does gets 1.
        good, parts = np.zeros(len(view.through), dtype=np.float64), view.by_fork
        good[parts.node[kept[parts.path]]] = 1.0
        found = spread_steps(parts, good[parts.node])
        out = view.leaf - view.offset[view.tree]
        return [replace(each, left_out=out[~kept & (view.tree == at)]) for at, each in enumerate(found)]

    def keeps(self, view: Steps) -> Bools:
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


def _answers(view: Steps) -> Bools:
    """[P] bool: whether a search answers with the end of a path."""
    return np.asarray([said is True for said in ends_info(view, ANSWER)], dtype=np.bool_)


def _words(view: Steps) -> list[bytes]:
    """For each path what was done on it, as bytes."""
    words, token = view.words, join(view.rewarded, "token")
    path = view.path[words.step]
    bounds = np.searchsorted(path, np.arange(view.paths + 1))
    spoken = np.stack([token[words.token].astype(np.int64), view.turn[words.step]], axis=-1)
    return [spoken[bounds[i] : bounds[i + 1]].tobytes() for i in range(view.paths)]
