"""Sampling one piece of an action: shared by explorers that branch within turns."""

from dataclasses import dataclass

from bough.engine import Sampling
from bough.rollout.budget import BudgetExceeded, Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.tree import Outcome, TruncatedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A sampled piece of an action and its result.

    Attributes:
        draft: The action so far; None when nothing was sampled, or when it failed.
        after: Where to continue: the action while it is incomplete, else the cursor after it; or the outcome of the
            path.
    """

    draft: PendingAction | None
    after: Cursor | PendingAction | Outcome


async def write_on(
    rollout: Rollout,
    at: Cursor | PendingAction,
    *,
    branch: int,
    retries: int,
    most: int | None = None,
    sampling: Sampling | None = None,
) -> Piece:
    """Sample a piece of an action, and execute the action when it is complete.

    A failed piece is sampled again up to `retries` times; the failed attempts stay in the tree as `FAILED` paths, which
    count nowhere. Where a budget of the tree is exceeded, the path is truncated.

    Args:
        rollout: The rollout.
        at: Where to continue; a complete action is only executed, once.
        branch: Distinguishes the pieces sampled from one position. The attempts are the branches from
            `first_branch(branch, retries)` on.
        retries: How often a failed piece is sampled again.
        most: Maximum number of tokens of the piece; None for the rest of the action.
        sampling: Sampling settings; None for the agent's.
    """
    if isinstance(at, Cursor) and not await rollout.budget.fits(Usage(turns=1)):
        # An action that the budget can't execute is not sampled.
        rollout.stop(at, TruncatedBy.TREE_TURNS)
        return Piece(draft=None, after=Outcome.TRUNCATED)
    piece = Piece(draft=None, after=Outcome.FAILED)
    complete = isinstance(at, PendingAction) and at.complete
    for attempt in range(1 if complete else retries + 1):
        piece = await _attempt(rollout, at, first_branch(branch, retries) + attempt, most, sampling)
        if piece.after is not Outcome.FAILED:
            break
    return piece


def first_branch(branch: int, retries: int) -> int:
    """The first of the `retries + 1` branch numbers in the tree that a branch reserves."""
    return branch * (retries + 1)


async def _attempt(
    rollout: Rollout, at: Cursor | PendingAction, branch: int, most: int | None, sampling: Sampling | None
) -> Piece:
    position, draft = at, None
    try:
        complete = isinstance(at, PendingAction) and at.complete
        written = at if complete else await rollout.sample(at, branch=branch, most=most, sampling=sampling)
        if not isinstance(written, PendingAction):
            return Piece(draft=None, after=Outcome.FAILED)
        position = draft = written
        after = await rollout.execute(draft) if draft.complete else draft
        return Piece(draft=None if after is Outcome.FAILED else draft, after=after)
    except BudgetExceeded as short:
        rollout.stop(position, short.budget)
        return Piece(draft=draft, after=Outcome.TRUNCATED)
