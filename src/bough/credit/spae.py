"""Advantages from the policy's confidence and correctness at each step."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.grpo import Grpo
from bough.credit.marks import written
from bough.credit.returns import ahead
from bough.credit.success import succeeded
from bough.credit.valued import whiten
from bough.needs import Need, appraised
from bough.piece import AtLeast, Between, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, StageError, path_view, spread_turns


@piece
class Spae:
    """SPAE (arXiv 2601.03823): less credit once the answer is known, more where the potential rises; needs potentials.

    With P_t the potential after turn t (`StepPotential`), R the return of the path, and C_t the number of turns
    before t after which the potential was above `saturated`:

        f_t = 1 - penalty * (1 - exp(-C_t))
        d_t = P_t - P_(t-1)
        g_t = exp((d_t - min d) / (max d - min d)) - mean of that          over the turns of the path
        A_t = ((R - mean R) * f_t + shaping * g_t), whitened over the turns of the batch

    A path that succeeds, with the potentials -.1, .2, .95, .93 before its turns:

        C    0      0      1       2            f     1        1        .6839    .5677
        d    .3     .75    -.02    .07          g    -.0741    1.1289   -.5894   -.4654

    The potential after a turn is that before the next one. After the last turn of a path there is nothing to ask: the
    answer is given, and the potential of a sure answer is 1 where it is right (the path succeeds), else -1. The first
    difference is to the prompt's potential. In the released example of the probe it is 0; the code of the estimator was
    not released. That minimum, maximum and mean of g are of a path is this library's reading. A tie has g = 0. Turns
    that the policy did not sample are in no statistic and get no credit.

    Attributes:
        column: The appraiser's column.
        penalty: Strength of the saturation penalty, in [0, 1]; 0 for none.
        shaping: Weight of g, >= 0.
        saturated: The potential above which the answer is known.
    """

    column: str = "potential"
    penalty: Annotated[float, Between(0, 1)] = 0.5
    shaping: Annotated[float, AtLeast(0, "0 or more")] = 0.5
    saturated: float = 0.9

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The appraiser's column."""
        return frozenset({appraised(self.column)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a tree lacks the column.
        """
        view = path_view(rewarded)
        before = self._potentials(view)
        after = ahead(before, view.start, np.where(succeeded(view), 1.0, -1.0))
        outcome = Grpo(std="none").of_paths(view)[view.path]
        found = outcome * self.discounts(after, view.start) + self.shaping * shaped(after - before, view.start)
        mine = written(view) > 0
        advantage = np.zeros(len(found))
        advantage[mine] = whiten(found[mine])
        return spread_turns(view, advantage)

    def discounts(self, after: Floats, start: Ints) -> Floats:
        """[S] float64: f, from the potential [S] after each turn; paths begin at `start` [P + 1]."""
        known = np.concatenate([[0], np.cumsum(after > self.saturated)])
        earlier = known[:-1] - np.repeat(known[start[:-1]], np.diff(start))
        return 1.0 - self.penalty * (1.0 - np.exp(-earlier))

    def _potentials(self, view: PathView) -> Floats:
        """[S] float64: the potential before each turn; 0 where it is unknown."""
        columns: list[Floats] = [np.empty(0)]
        for each in view.rewarded:
            appraisal = each.tree.appraisals.get(self.column)
            if appraisal is None:
                raise StageError(
                    f"Spae.column: got {self.column!r} and a tree of task {each.tree.task.id} with the columns "
                    f"{sorted(each.tree.appraisals)}; need a tree that StepPotential has appraised"
                )
            columns.append(appraisal.value)
        return np.nan_to_num(np.concatenate(columns)[view.node])


def shaped(difference: Floats, start: Ints) -> Floats:
    """[S] float64: g, from the difference [S] of the potential in each turn; paths begin at `start` [P + 1]."""
    some = start[:-1][np.diff(start) > 0]
    lengths = np.diff(start)[np.diff(start) > 0]
    if not len(some):
        return np.zeros(len(difference))
    low, high = np.minimum.reduceat(difference, some), np.maximum.reduceat(difference, some)
    span = np.where(high > low, high - low, 1.0)
    risen = np.exp((difference - np.repeat(low, lengths)) / np.repeat(span, lengths))
    return risen - np.repeat(np.add.reduceat(risen, some) / lengths, lengths)
