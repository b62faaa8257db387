"""The maximum cost of a path, which concurrent calls need under a budget of the tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.env import Branching
from bough.rollout.agent import Limits
from bough.rollout.budget import Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.writer import Writer
from bough.varying import constant


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxCost:
    """The maximum cost of the next turns of a path.

    Attributes:
        limits: Budgets of a path.
        start: Number of actions of `Task.start`, which do not count in `limits.turns`.
        tokens: Maximum number of tokens of an action, over all seats.
        branching: The environment's.
        automatic: Whether turns of automatic seats follow a turn.
    """

    limits: Limits
    start: int
    tokens: int
    branching: Branching
    automatic: bool

    def __call__(self, at: Cursor | PendingAction, *, turns: int | None = None, attempts: int = 1) -> Usage:
        """The maximum cost of turns that are each sampled by one request, and executed.

        Args:
            at: Where they begin.
            turns: Their number; None for all up to the end of the path.
            attempts: How often each may be taken, where it fails.
        """
        done = (at.cursor if isinstance(at, PendingAction) else at).actions
        number = max(1, constant(self.limits.turns) - (done - self.start))
        if turns is not None and not self.automatic:
            number = min(number, turns)
        # A turn may replay the actions before it: each turn, or the first one from a state that another path changed.
        replayed = {
            Branching.COPY: 0,
            Branching.NONE: done,
            Branching.REPLAY: number * done + number * (number - 1) // 2,
        }[self.branching]
        return Usage(
            turns=attempts * (number + replayed), tokens=attempts * number * self.tokens, calls=attempts * number
        )


def make_max_cost(writers: Sequence[Writer], branching: Branching, *, automatic: bool) -> MaxCost:
    """The maximum cost of a path of the seats of some writers; other arguments as in `MaxCost`."""
    return MaxCost(
        limits=writers[0].limits,
        start=len(writers[0].builder.task.start),
        tokens=max(each.agent.sampling.max_tokens for each in writers),
        branching=branching,
        automatic=automatic,
    )
