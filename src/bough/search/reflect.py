"""What the agent's engine thinks went wrong, for the policy to read."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from bough.engine import Sampling
from bough.explore.asking import Text, check_places
from bough.rollout.cursor import Cursor, PendingAction
from bough.search.node import SearchNode
from bough.search.question import asked, story
from bough.search.tree import SearchTree

FAILED = (
    "You were told:\n{instructions}\n\nThis is what you did, and what came of it:\n{turns}\n{observation}\n\n"
    "It did not solve the task. Say in two sentences why, and what to do otherwise next time."
)
ANSWERED = (
    "You were told:\n{instructions}\n\nThis is what you did, and what came of it:\n{turns}\n{observation}\n\n"
    "Say in two sentences what is wrong with the last action, and how to do better."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflections:
    """Why earlier paths failed, said by the engine that walked them (LATS, arXiv 2310.04406).

    Each path that ended with a value below `under` is asked about once, when the next actions are written, and of all
    these reflections the newest `keep` are told. Only those that would be told are asked for.

    Attributes:
        keep: How many; LATS's released code gives up to three.
        under: A path that is worth less has failed.
        prompt: The question; it may use the places {instructions}, {turns} and {observation}.
        sampling: How the answer is sampled, if not as the agent samples.
    """

    keep: int = 3
    under: float = 1.0
    prompt: str = FAILED
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"Reflections.keep: got {self.keep}; need at least 1")
        check_places("Reflections.prompt", self.prompt)

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The reflections."""
        del node, earlier
        failed = [end for end in tree.ends() if not math.isnan(end.value) and end.value < self.under]
        said = [await once(tree, end, "reflection", self.prompt, self.sampling) for end in failed[-self.keep :]]
        return "\n".join(["Earlier attempts failed:", *(f"- {text}" for text in said)]) if said else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique:
    """What is wrong with the last action, for the policy to refine it (SPaR, arXiv 2412.11605).

    Nothing is said before the first action. One question for each place, however many actions are written there.

    Attributes:
        prompt: The question; it may use the places {instructions}, {turns} and {observation}.
        sampling: How the answer is sampled, if not as the agent samples.
    """

    prompt: str = ANSWERED
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        check_places("Critique.prompt", self.prompt)

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The critique."""
        del earlier
        if not isinstance(node.at, Cursor) or not node.at.past:
            return ""
        return await once(tree, node, "critique", self.prompt, self.sampling)


async def once(tree: SearchTree, node: SearchNode, name: str, prompt: str, sampling: Sampling | None) -> str:
    """Ask about a node what nobody else has asked; the answer is in its notes under `name`, "" if there is none.

    Raises:
        BudgetExceeded: when a budget can't pay for it.
    """
    lock = node.notes.setdefault(f"{name} asked for", asyncio.Lock())
    assert isinstance(lock, asyncio.Lock)
    async with lock:
        if name not in node.notes:
            text = prompt.format_map(story(tree, node))
            said = await asked(tree, node, name, system="", text=text, read=Text(), sampling=sampling)
            node.notes[name] = said or ""
    return str(node.notes[name])
