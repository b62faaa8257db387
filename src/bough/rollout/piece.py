"""Going on by one piece: what explorers that branch within turns have in common."""

from dataclasses import dataclass

from bough.engine import Sampling
from bough.rollout.budget import BudgetExceeded, Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.tree import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What was written from a place, and where that led.

    Attributes:
        draft: The action as far as it is written; None when nothing was, or it failed.
        after: Where to go on: the draft itself while it is not whole, else where the agent stands after it; or how the
            path ended.
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
    """Write a piece of an action, and do the action when that makes it whole.

    What fails is written anew, up to `retries` times; the failed attempts stay in the tree as `FAILED` paths, which
    count nowhere. Where a budget of the tree can't pay, the path is truncated.

    Args:
        rollout: Who plays.
        at: Where to go on; an action that is whole is only done, once.
        branch: Tells what is written from one place apart. Its attempts are the branches from `first_branch(branch,
            retries)` on.
        retries: How often what fails is tried again.
        most: Most tokens of the piece; None for the rest of the action.
        sampling: How, if not as the agent does.
    """
    if isinstance(at, Cursor) and not rollout.budget.affords(Usage(turns=1)):
        # What could not be done need not be written.
        rollout.stop(at, "tree_turns")
        return Piece(draft=None, after=Outcome.TRUNCATED)
    piece = Piece(draft=None, after=Outcome.FAILED)
    whole = isinstance(at, PendingAction) and at.complete
    for attempt in range(1 if whole else retries + 1):
        piece = await _attempt(rollout, at, first_branch(branch, retries) + attempt, most, sampling)
        if piece.after is not Outcome.FAILED:
            break
    return piece


def first_branch(branch: int, retries: int) -> int:
    """The number in the tree of a branch that may take `retries` more of them."""
    return branch * (retries + 1)


async def _attempt(
    rollout: Rollout, at: Cursor | PendingAction, branch: int, most: int | None, sampling: Sampling | None
) -> Piece:
    stands, draft = at, None
    try:
        whole = isinstance(at, PendingAction) and at.complete
        written = at if whole else await rollout.write(at, branch=branch, most=most, sampling=sampling)
        if not isinstance(written, PendingAction):
            return Piece(draft=None, after=Outcome.FAILED)
        stands = draft = written
        after = await rollout.act(draft) if draft.complete else draft
        return Piece(draft=None if after is Outcome.FAILED else draft, after=after)
    except BudgetExceeded as short:
        rollout.stop(stands, short.budget)
        return Piece(draft=draft, after=Outcome.TRUNCATED)
