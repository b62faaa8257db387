"""One path from a state to its end, with its actions and its outcome."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.tree import COUNTED, Kind, Outcome

Hints: TypeAlias = Callable[[Cursor], Awaitable[str]]
"""Returns a text that is added to the prompt before the policy acts at a cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A finished path.

    Attributes:
        places: Cursors at which the agent acted, in order.
        actions: Builder indices of its actions; the last cursor has none when a budget ended the path there.
        leaf: Builder index of its last node.
        outcome: How the path ended.
        success: Whether the task is solved.
    """

    cursors: tuple[Cursor, ...]
    actions: tuple[int, ...]
    leaf: int
    outcome: Outcome
    success: bool

    @property
    def unsolved(self) -> bool:
        """Whether the path counts and did not solve its task."""
        return self.outcome in COUNTED and not self.success


async def attempt(rollout: Rollout, cursor: Cursor, *, branch: int, hints: Hints | None = None) -> Attempt:
    """Roll out from a cursor to the end; `branch` is the branch of the first turn, later turns are branch 0."""
    places, actions, here, leaf = list[Cursor](), list[int](), cursor, cursor.node
    while True:
        places.append(here)
        first = branch if len(places) == 1 else 0
        after = await rollout.advance(here, branch=first, hint=await hints(here) if hints else "")
        action = _below(rollout, here.node, first)
        if action is not None:
            actions.append(action)
            leaf = rollout.answered.get(action, action)
        if isinstance(after, Outcome):
            success = bool(actions) and rollout.builder.solved(leaf)
            return Attempt(cursors=tuple(places), actions=tuple(actions), leaf=leaf, outcome=after, success=success)
        here = after


async def attempt_with_retries(
    rollout: Rollout, cursor: Cursor, *, number: int, step: int, retries: int, hints: Hints | None = None
) -> Attempt | None:
    """Roll out a path, and retry it when it fails; None when all attempts failed.

    The branches of the attempts are `number`, `number + step`, `number + 2 * step`, and so on.
    """
    for again in range(retries + 1):
        result = await attempt(rollout, cursor, branch=number + again * step, hints=hints)
        if result.outcome is not Outcome.FAILED:
            return result
    return None


def _below(rollout: Rollout, node: int, branch: int) -> int | None:
    """The latest action on a branch below a node."""
    nodes = rollout.builder.nodes
    for number in range(len(nodes) - 1, node, -1):
        each = nodes[number]
        if each.parent == node and each.branch == branch and each.kind is Kind.ACTION:
            return number
    return None
