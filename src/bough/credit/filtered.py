"""Filtered imitation: successful paths get 1, other paths are excluded."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.credit import Credit
from bough.credit.success import succeeded
from bough.piece import AtLeast, piece
from bough.tree import Bools, Credited, PathView, Rewarded, join, path_view, spread_turns


@piece
class Filtered:
    """Filtered imitation (ReST, arXiv 2308.08998; AlphaMath, 2405.03553): paths that succeed get 1, others 0.

    For losses on positive advantages (`Imitation`), with each kept path counted once. A token shared with
    other paths gets as positive advantage the fraction of its paths that are kept. Of paths with returns 1, 1, 0, the
    first two kept:

        chains              1  1  0           a first turn that all share    2/3

    Paths that are not kept are excluded from the batch, so the mean of the loss excludes them too. They stay in when
    a value head learns from them, by the targets of another rule:
    `Filtered(value_targets=Searched(head="value"))` is AlphaMath's pair.

    Attributes:
        answer: Whether only the path that is the search's result is kept, if it succeeded.
        max_paths: Maximum number of paths of a task, the shortest first, ties in order; paths with the same tokens
            count as one. None for all.
        min_return: Minimum return of a kept path; None to keep the paths with the environment's `success`.
        value_targets: The rule for the targets of value heads; None for none.
    """

    answer: bool = False
    max_paths: Annotated[int | None, AtLeast(1)] = None
    min_return: float | None = None
    value_targets: Credit | None = None

    compares: ClassVar[Literal["nothing"]] = "nothing"

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        kept = self.keeps(view)
        if self.value_targets is not None:
            found = spread_turns(view, kept[view.path].astype(np.float64))
            return [
                replace(each, value_targets=other.value_targets)
                for each, other in zip(found, self.value_targets(rewarded), strict=True)
            ]
        # All included paths through a token agree: it gets 1.
        good, parts = np.zeros(len(view.through), dtype=np.float64), view.by_fork
        good[parts.node[kept[parts.path]]] = 1.0
        found = spread_turns(parts, good[parts.node])
        out = view.leaf - view.offset[view.tree]
        return [replace(each, excluded_leaves=out[~kept & (view.tree == at)]) for at, each in enumerate(found)]

    def keeps(self, view: PathView) -> Bools:
        """[P] bool: the paths of a batch that are kept."""
        kept = succeeded(view) if self.min_return is None else view.returns >= self.min_return
        if self.answer:
            kept &= join(view.rewarded, "answer")[view.leaf]
        if self.max_paths is None:
            return kept
        actions = _actions(view)
        found: dict[int, set[bytes]] = {}
        order: list[int] = np.argsort(view.turns, kind="stable").tolist()
        for path in order:
            if not kept[path]:
                continue
            of_task = found.setdefault(int(view.task[path]), set())
            kept[path] = actions[path] not in of_task and len(of_task) < self.max_paths
            if kept[path]:
                of_task.add(actions[path])
        return kept


def _actions(view: PathView) -> list[bytes]:
    """Returns the actions of each path, as bytes."""
    path_tokens, token = view.path_tokens, join(view.rewarded, "token")
    path = view.path[path_tokens.step]
    bounds = np.searchsorted(path, np.arange(view.paths + 1))
    sampled = np.stack([token[path_tokens.token].astype(np.int64), view.turn[path_tokens.step]], axis=-1)
    return [sampled[bounds[i] : bounds[i + 1]].tobytes() for i in range(view.paths)]
