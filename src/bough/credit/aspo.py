"""Advantages shaped by the position of an event in the path."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.credit.grpo import Grpo
from bough.credit.marks import marked, name_of, need_of, spans, written
from bough.credit.success import succeeded
from bough.needs import Need
from bough.piece import Between, piece
from bough.tree import Bools, Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns, sum_at


@piece
class Aspo:
    """ASPO (arXiv 2508.19201): solved paths get more for an early event, such as running code; needs its mark.

    Advantage shaping among the solved paths of a task with the mark. p is the position of a path's first mark, L its
    length and A the advantage of `base`:

        A'_i = A_i + clip(delta * (p_i - mean of p) / mean of L,  -cap * |A_i|,  cap * |A_i|)

    Other paths keep A. Since cap < 1 no sign changes: earliness stays a small correction to correctness, unlike a
    reward for it (the paper's section 3.3). With A = 0.8 and a mean length of 100, for each of two groups:

        p     10    30    50           5    95
        A'   1.2   0.8   0.4        1.36  0.24

    The paper treats one long response with calls inside. Here a path may have many turns. A path is solved when its
    leaf has `success`; positions and lengths count sampled tokens. The mark begins at the first turn with a true
    annotation of its name, or at the span of that name in the turn if the parser gives one. Asymmetric importance
    sampling (2510.06062) has the same name and is another method.

    Attributes:
        base: The rule for the advantages before shaping.
        mark: The event: a mark of the parser such as "call", a call of a tool; "call:python" for one tool; or "valid",
            the first action that the environment recognises.
        delta: Weight of the position; negative to be early, positive to be late.
        cap: Largest change as a share of the advantage, in [0, 1).
    """

    base: Grpo = Grpo()
    mark: str = "call"
    delta: float = -2.0
    cap: Annotated[float, Between(0, 1, "a number from 0 to below 1, or signs would change", below=True)] = 0.7

    @property
    def needs(self) -> frozenset[Need]:
        """The mark, when it comes from a parser."""
        return need_of(self.mark)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        position, length, carries = self._positions(view)
        chosen = carries & succeeded(view)
        return spread_turns(view, self.shape(self.base.of_paths(view), position, length, view.task, chosen)[view.path])

    def shape(self, advantage: Floats, position: Floats, length: Floats, task: Ints, chosen: Bools) -> Floats:
        """[n] float64: n advantages, shaped where `chosen` [n] is True, given positions, lengths and tasks."""
        who, tasks = task[chosen], int(task.max(initial=-1)) + 1
        count = np.maximum(np.bincount(who, minlength=tasks), 1)
        late = position[chosen] - (sum_at(who, position[chosen], tasks) / count)[who]
        mean_length = (sum_at(who, length[chosen], tasks) / count)[who]
        most = self.cap * np.abs(advantage[chosen])
        shaped = np.array(advantage, dtype=np.float64)
        shaped[chosen] += np.clip(self.delta * late / np.maximum(mean_length, 1.0), -most, most)
        return shaped

    def _positions(self, view: PathView) -> tuple[Floats, Floats, Bools]:
        """[P] each: tokens before the mark, tokens in all, and whether a path has the mark."""
        count = written(view)
        before = np.cumsum(count) - count
        length = sum_at(view.path, count, view.paths)
        turn = np.flatnonzero(marked(view, self.mark))
        path, first = np.unique(view.path[turn], return_index=True)
        turn, position = turn[first], np.zeros(view.paths)
        position[path] = (before + spans(view, name_of(self.mark))[0])[turn] - before[view.start[path]]
        carries = np.zeros(view.paths, dtype=np.bool_)
        carries[path] = True
        return position, length, carries
