"""Values of steps from their distance to success."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bough.credit.head_targets import head_targets
from bough.credit.success import succeeded
from bough.needs import Need, value_head
from bough.tree import Credited, Floats, PathView, Rewarded, ValueOf, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class RestMcts:
    """ReST-MCTS* (arXiv 2406.03816): a step's value by its distance to success; needs a tree with both outcomes.

    With m the turns from a turn to the nearest successful end below it, itself included, and V of the turn before (0 at
    the prompt):

        success below       V_k = V_(k-1) + (1 - V_(k-1)) / m
        none below          V_k = max(0, V_(k-1) - (1 - V_(k-1)) / m)        m: that of the last turn that had one

    where the prompt's m is one more than that of a first turn on the shortest path. Values rise to 1 in equal steps
    along the shortest path. Two branches at the prompt and two below each, of which only the first succeeds:

        a .5 (m 2)    a1 1 (m 1)    a2 .25 (m 2)         b 0 (m 3)    b1 0    b2 0

    A turn's advantage is the rise of V. With a `head`, its target at the first token of each turn is V of the turn
    before, the value of the current state; with `target="action"` it is V of the turn, at its last token. In the paper
    a value model learns V of every step and then guides the next search, and the policy imitates the paths that
    succeeded: `Filtered(value_targets=RestMcts(head="value"))`.

    The released code infers values only on paths that ended; here a truncated path counts as one without
    success. In a task without a correct end there is no m, so no turn has a target, and advantages are 0.

    Attributes:
        head: Name of the value head with these targets; None for none.
        target: What the head values.
    """

    head: str | None = None
    target: ValueOf = "state"

    compares: ClassVar[Literal["nothing"]] = "nothing"

    @property
    def needs(self) -> frozenset[Need]:
        """The critic with this head, if there is one."""
        return frozenset() if self.head is None else frozenset({value_head(self.head)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        value, before = self.of_turns(view)
        solved = np.bincount(view.task, succeeded(view))[view.task[view.path]] > 0
        before_known, known = (np.where(solved, each, np.nan) for each in (before, value))
        value_targets = head_targets(self.head, self.target, view, before=before_known, after=known)
        return spread_turns(view, value - before, value_targets)

    def of_turns(self, view: PathView) -> tuple[Floats, Floats]:
        """[S] float64 each: V of each turn, and of the one before it."""
        won = succeeded(view)
        to_go = np.where(won[view.path], (view.turns[view.path] - view.turn).astype(np.float64), np.inf)
        nearest = np.full(len(view.through), np.inf)
        np.minimum.at(nearest, view.node, to_go)
        of_task = np.full(int(view.task.max(initial=-1)) + 1, np.inf)
        np.minimum.at(of_task, view.task[won], view.turns[won] + 1.0)
        value, before = np.zeros(len(view.path)), np.zeros(len(view.path))
        distance = of_task[view.task]
        for turn in range(int(view.turns.max(initial=0))):
            at = view.start[:-1][view.turns > turn] + turn
            path = view.path[at]
            alive = np.isfinite(nearest[view.node[at]])
            distance[path] = np.where(alive, nearest[view.node[at]], distance[path])
            before[at] = value[at - 1] if turn else 0.0
            step = (1 - before[at]) / distance[path]
            value[at] = np.maximum(0.0, before[at] + np.where(alive, step, -step))
        return value, before
