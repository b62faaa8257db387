"""Advantages and value targets from the values of a tree search."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.branches import value_after, value_before
from bough.credit.head_targets import head_targets
from bough.needs import Need, value_head
from bough.piece import Between, piece
from bough.tree import Credited, Floats, PathView, Rewarded, ValueOf, join, path_view, spread_turns


@piece
class Searched:
    """Values of a tree search (AlphaMath, arXiv 2405.03553; CPL, 2409.08642); needs a search for explorer.

    The score q of a turn is the search's final value of the state after it: the column `value` of its action. With
    `relative` its advantage is q minus that of the state before it, otherwise q itself. Siblings have the same order in
    both; a loss that pairs values above 0 with values below (`StepApo`) uses q, in [-1, 1] as in CPL.

        root .65     a .8   b .2          relative: a .15   b -.45

    Turns that are no nodes of the search (those of its evaluation rollouts) get the
    mean return of the paths through them, as do all turns of a tree without a search.

    With a `head`, its target at the first token of each turn is the value of the state before the turn, the value that
    `CriticValue` evaluates. The final state of a path has no target, as no turn starts there. With `target="action"`
    the target is q, at the turn's last token, for `CriticValue(of="action")`.

    With `rating_weight` w above 0 the value is (1 - w) * q + w * the rating of the action before its execution
    (Agent Q, arXiv 2408.07199, mixes critic and search so; its weight of .5 could not be checked). Without
    a rating, it is q.

    Attributes:
        relative: Whether the worth of the place is taken off.
        rating_weight: Weight of the rating in a value, in [0, 1].
        head: Name of the value head that learns the values; None for none.
        target: What the head values.
    """

    relative: bool = True
    rating_weight: Annotated[float, Between(0, 1)] = 0.0
    head: str | None = None
    target: ValueOf = "state"

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic whose head learns, if one does."""
        return frozenset() if self.head is None else frozenset({value_head(self.head)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        score, before = self.scores(view), self._before(view)
        value_targets = head_targets(self.head, self.target, view, before=before, after=score)
        return spread_turns(view, score - before if self.relative else score, value_targets)

    def scores(self, view: PathView) -> Floats:
        """[S]: the score q of each turn."""
        value = join(view.rewarded, "value")[view.node]
        if self.rating_weight:
            rating = join(view.rewarded, "rating")[view.node]
            value = np.where(np.isnan(rating), value, (1 - self.rating_weight) * value + self.rating_weight * rating)
        return np.where(np.isnan(value), value_after(view, view.returns), value)

    def _before(self, view: PathView) -> Floats:
        """[S]: the value of the state before each turn; the previous action's, or the prompt's."""
        value = join(view.rewarded, "value")
        root = value[view.offset[:-1]][view.tree[view.path]]
        above = np.where(view.turn == 0, root, np.roll(value[view.node], 1))
        return np.where(np.isnan(above), value_before(view, view.returns), above)
