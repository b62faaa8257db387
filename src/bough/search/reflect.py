"""Reflections and critiques of the agent's engine, as hints for the policy."""

import asyncio
import math
from collections.abc import Sequence
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Placeholders, Text
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.search.node import SearchNode
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

FAILED = (
    "You were told:\n{instructions}\n\nThis is what you did, and what came of it:\n{turns}\n{observation}\n\n"
    "It did not solve the task. Say in two sentences why, and what to do otherwise next time."
)
ANSWERED = (
    "You were told:\n{instructions}\n\nThis is what you did, and what came of it:\n{turns}\n{observation}\n\n"
    "Say in two sentences what is wrong with the last action, and how to do better."
)


@piece
class Reflections(QuerySettings):
    """Reflections of the engine on failed paths (LATS, arXiv 2310.04406).

    Each path that ended with a value below `under` gets one reflection, which is requested when the next actions are
    sampled. The hint holds the newest `keep`; others are not requested.

    Attributes:
        keep: Number of reflections; up to three in LATS's released code.
        under: A path with a value below this has failed.
        prompt: The question; it may use the placeholders {instructions}, {turns} and {observation}.
    """

    keep: Annotated[int, AtLeast(1)] = 3
    under: float = 1.0
    prompt: Annotated[str, Placeholders()] = FAILED

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The reflections."""
        del node, earlier
        failed = [end for end in tree.ends() if not math.isnan(end.value) and end.value < self.under]
        reflections = [await once(tree, end, "reflection", self.prompt, self) for end in failed[-self.keep :]]
        return "\n".join(["Earlier attempts failed:", *(f"- {text}" for text in reflections)]) if reflections else ""


@piece
class Critique(QuerySettings):
    """A critique of the last action, from which the policy refines it (SPaR, arXiv 2412.11605).

    The hint is empty before the first action. Each node gets one question, whatever the number of actions sampled
    there.

    Attributes:
        prompt: The question; it may use the placeholders {instructions}, {turns} and {observation}.
    """

    prompt: Annotated[str, Placeholders()] = ANSWERED

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The critique."""
        del earlier
        if not isinstance(node.at, Cursor) or not node.at.past:
            return ""
        return await once(tree, node, "critique", self.prompt, self)


async def once(tree: SearchTree, node: SearchNode, name: str, prompt: str, piece: QuerySettings) -> str:
    """Send a question about a node once; its answer is stored in the notes under `name`, "" without one.

    Raises:
        BudgetExceeded: when it does not fit a budget.
    """
    lock = node.notes.setdefault(f"{name} asked for", asyncio.Lock())
    assert isinstance(lock, asyncio.Lock)
    async with lock:
        if name not in node.notes:
            text = prompt.format_map(prompt_fields(tree, node))
            answer = await asked(tree, node, piece.query(text, Text(), name))
            node.notes[name] = answer or ""
    return str(node.notes[name])
