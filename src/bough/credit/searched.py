"""Advantages and value targets from the values of a tree search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bough.credit.branches import value_after, value_before
from bough.credit.success import value_targets_of_places
from bough.tree import Credited, Floats, PathView, Rewarded, action_info, path_view, spread_turns
from bough.tree.needs import Need, value_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Values of a tree search (AlphaMath, arXiv 2405.03553; CPL, 2409.08642); needs a search for explorer.

    A turn is worth q, what the search thinks of going there when it ends: the info "value" of its action. With
    `relative` its advantage is q less that of the place it was acted from, otherwise q itself. Siblings rank alike in
    both; a loss that pairs what is above 0 with what is below (`StepApo`) takes q, in [-1, 1] as in CPL.

        root .65     a .8   b .2          relative: a .15   b -.45

    Turns that are no nodes of the search (those of the paths it played out to see what a place is worth) are worth the
    mean return of the paths through them, and so is everything in a tree that no search grew.

    With a `head`, its target at the first token of each turn is the value of the place in which the turn begins, which
    is what `CriticValue` asks for. What ends a path has no goal: nobody reads it, and the search knows it.

    With `guess` above 0 the value is (1 - guess) * q + guess * what a rating said of the action before it was carried
    out (Agent Q, arXiv 2408.07199, mixes critic and search so; its weight of .5 could not be checked). Where nobody
    was asked, it is q.

    Attributes:
        relative: Whether the worth of the place is taken off.
        guess: Weight of the rating in a value, in [0, 1].
        head: Name of the value head that learns the values; None for none.
    """

    relative: bool = True
    guess: float = 0.0
    head: str | None = None

    compares: ClassVar[Literal["nothing"]] = "nothing"

    def __post_init__(self) -> None:
        if not 0 <= self.guess <= 1:
            raise ValueError(f"Searched.guess: got {self.guess}; need a number from 0 to 1")

    @property
    def needs(self) -> frozenset[Need]:
        """The critic whose head learns, if one does."""
        return frozenset() if self.head is None else frozenset({value_head(self.head)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = path_view(rewarded)
        worth, before = self._worth(view), self._before(view)
        value_targets = {} if self.head is None else {self.head: value_targets_of_places(view, before)}
        return spread_turns(view, worth - before if self.relative else worth, value_targets)

    def _worth(self, view: PathView) -> Floats:
        """[S]: of each turn."""
        value = _said(view, "value")
        if self.guess:
            guess = _said(view, "guess")
            value = np.where(np.isnan(guess), value, (1 - self.guess) * value + self.guess * guess)
        return np.where(np.isnan(value), value_after(view, view.returns), value)

    def _before(self, view: PathView) -> Floats:
        """[S]: of the place that each turn was acted from; what was done before it led there, or the prompt."""
        first, value = view.turn == 0, _said(view, "value")
        roots = [_number(each.tree.info[0].get("value")) for each in view.rewarded]
        root = np.asarray(roots, dtype=np.float64)[view.tree[view.path]]
        above = np.where(first, root, np.roll(value, 1))
        return np.where(np.isnan(above), value_before(view, view.returns), above)


def _said(view: PathView, name: str) -> Floats:
    """[S]: what the info of each turn says, nan where it says nothing."""
    said, which = action_info(view, name)
    return np.asarray([_number(each) for each in said], dtype=np.float64)[which]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else np.nan
