"""Process labels of steps: whether, or how often, success follows."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.branches import value_after
from bough.credit.head_targets import head_targets
from bough.credit.success import succeeded
from bough.needs import Need, value_head
from bough.piece import AtLeast, piece
from bough.tree import Credited, Floats, PathView, Rewarded, ValueOf, path_view, spread_turns


@piece
class Process:
    """Process labels (Math-Shepherd, arXiv 2312.08935): whether, or how often, a turn leads to success; needs branches.

    A turn's advantage is its label: "soft" the share of the paths through it that succeed, "hard" whether one does. Two
    branches at the prompt and two below each, of which only the first succeeds:

        hard    a 1     a1 1    a2 0         b 0    b1 0    b2 0
        soft    a .5    a1 1    a2 0         b 0    b1 0    b2 0

    Pairs of turns that differ in the hard label are TP-LLaMA's (arXiv 2406.07115): a turn of a successful path over
    each sibling below which every path failed. Use `Pairs(unit="turn", choice="all")`.

    With `drop` the fall of the label since the turn before is subtracted from it: MedS3's look back (arXiv
    2501.12051). Labels 1, .5, .75 with drop 1 become 1, 0, .75. The released code measures the fall from the label
    that is already lowered. So falls add up, a rise is added too, and the first two steps are exempt.

    With a `head`, its target at the first token of each turn is the label of the turn before, the value of the current
    state. At the prompt it is the share of the task's paths that succeed, or whether one does. With `target="action"`
    the target is the turn's own label, at its last token, for `CriticValue(of="action")`.

    Attributes:
        label: "soft" or "hard".
        drop: Weight of a fall, >= 0.
        head: Name of the value head that learns the labels; None for none.
        target: What the head values.
    """

    label: Literal["soft", "hard"] = "soft"
    drop: Annotated[float, AtLeast(0, "0 or more")] = 0.0
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
        label, before = self.of_turns(view)
        value_targets = head_targets(self.head, self.target, view, before=before, after=label)
        return spread_turns(view, label, value_targets)

    def of_turns(self, view: PathView) -> tuple[Floats, Floats]:
        """[S] float64 each: the label of each turn, and of the one before it."""
        won = succeeded(view).astype(np.float64)
        of_task = np.bincount(view.task, won) / np.maximum(np.bincount(view.task), 1)
        share = value_after(view, won)
        if self.label == "hard":
            share, of_task = (share > 0).astype(np.float64), (of_task > 0).astype(np.float64)
        first, root = view.turn == 0, of_task[view.task[view.path]]
        fallen = np.where(first, 0.0, np.maximum(0.0, np.roll(share, 1) - share))
        label = share - self.drop * fallen
        return label, np.where(first, root, np.roll(label, 1))
