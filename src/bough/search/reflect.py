"""Reflections and critiques of the agent's engine, as hints for the policy."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from bough.appraise.prompts import Text, check_placeholders
from bough.engine import Sampling
from bough.needs import POLICY, Need, roles
from bough.rollout.cursor import Cursor, PendingAction
from bough.search.node import SearchNode
from bough.search.questions import asked, story
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
    """Reflections of the engine on failed paths (LATS, arXiv 2310.04406).

    Each path that ended with a value below `under` gets one reflection, which is requested when the next actions are
    sampled. The hint holds the newest `keep`; others are not requested.

    Attributes:
        keep: Number of reflections; up to three in LATS's released code.
        under: A path with a value below this has failed.
        prompt: The question; it may use the placeholders {instructions}, {turns} and {observation}.
        sampling: Sampling settings of the answer; None for the agent's.
        role: The role whose model answers.
    """

    keep: int = 3
    under: float = 1.0
    prompt: str = FAILED
    sampling: Sampling | None = None
    role: str = POLICY

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"Reflections.keep: got {self.keep}; need at least 1")
        check_placeholders("Reflections.prompt", self.prompt)

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The reflections."""
        del node, earlier
        failed = [end for end in tree.ends() if not math.isnan(end.value) and end.value < self.under]
        reflections = [
            await once(
                tree,
                end,
                "reflection",
                self.prompt,
                self.sampling,
                self.role,
            )
            for end in failed[-self.keep :]
        ]
        return "\n".join(["Earlier attempts failed:", *(f"- {text}" for text in reflections)]) if reflections else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique:
    """A critique of the last action, from which the policy refines it (SPaR, arXiv 2412.11605).

    The hint is empty before the first action. Each node gets one question, whatever the number of actions sampled
    there.

    Attributes:
        prompt: The question; it may use the placeholders {instructions}, {turns} and {observation}.
        sampling: Sampling settings of the answer; None for the agent's.
        role: The role whose model answers.
    """

    prompt: str = ANSWERED
    sampling: Sampling | None = None
    role: str = POLICY

    def __post_init__(self) -> None:
        check_placeholders("Critique.prompt", self.prompt)

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The critique."""
        del earlier
        if not isinstance(node.at, Cursor) or not node.at.past:
            return ""
        return await once(tree, node, "critique", self.prompt, self.sampling, self.role)


async def once(tree: SearchTree, node: SearchNode, name: str, prompt: str, sampling: Sampling | None, role: str) -> str:
    """Send a question about a node once; its answer is stored in the notes under `name`, "" without one.

    Raises:
        BudgetExceeded: when it does not fit a budget.
    """
    lock = node.notes.setdefault(f"{name} asked for", asyncio.Lock())
    assert isinstance(lock, asyncio.Lock)
    async with lock:
        if name not in node.notes:
            text = prompt.format_map(story(tree, node))
            answer = await asked(tree, node, name, system="", text=text, read=Text(), sampling=sampling, role=role)
            node.notes[name] = answer or ""
    return str(node.notes[name])
