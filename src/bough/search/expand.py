"""Which actions a search considers at a place."""

import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal

from bough.rollout.cursor import Cursor, PendingAction
from bough.search import Hint, Written
from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """So many samples of the policy, all at once.

    What is written under a hint is no sample that could be reinforced: the policy will not be told so later.

    Attributes:
        width: How many.
        prior: How likely the policy finds an action: the exponential of its mean token log-probability ("tokens",
            AlphaMath, arXiv 2405.03553), its probability ("action"), or one over the number of samples ("even").
        hint: What the policy is told besides; None for nothing. With one that tells what was just written, samples are
            written one after another.
    """

    width: int = 4
    prior: Literal["tokens", "action", "even"] = "tokens"
    hint: Hint | None = None

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Sample.width: got {self.width}; need at least 1")

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Written]:
        """Write at a node."""
        count = self.width * times
        if self.hint is None:
            drafts = await tree.together(tree.write(node) for _ in range(count))
        elif self.hint.in_turn:
            drafts = [draft async for draft in self._in_turn(tree, node, count, self.hint)]
        else:
            said = await tree.paid(self.hint(tree, node, _written(node)))
            drafts = await tree.together(tree.write(node, hint=said) for _ in range(count)) if said is not None else []
        return [(draft, self._prior(draft, count)) for draft in drafts if draft is not None]

    async def _in_turn(
        self, tree: SearchTree, node: SearchNode, count: int, hint: Hint
    ) -> AsyncGenerator[PendingAction | None, None]:
        """One after another, each told of those before it."""
        earlier = _written(node)
        for _ in range(count):
            said = await tree.paid(hint(tree, node, earlier))
            draft = None if said is None else await tree.write(node, hint=said)
            if draft is not None:
                earlier.append(draft)
            yield draft

    def _prior(self, draft: PendingAction, count: int) -> float:
        if self.prior == "even":
            return 1 / count
        return math.exp(draft.logprob / (max(1, draft.sampled_tokens) if self.prior == "tokens" else 1))


def _written(node: SearchNode) -> list[PendingAction]:
    """The actions of a node's children."""
    return [child.draft for child in node.children if child.draft is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admissible:
    """Every action that the environment says has a meaning here, equally likely; needs an environment that says so.

    Writing them costs nothing, and what is written is no sample of the policy: there is nothing to reinforce in it.
    """

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Written]:
        """Write at a node.

        Raises:
            ValueError: when the environment does not say what can be done.
        """
        actions = node.at.state.admissible if isinstance(node.at, Cursor) else None
        if actions is None:
            raise ValueError(
                f"Admissible: got a state without admissible actions at {node}; need an environment that sets "
                "State.admissible, or expand=Sample()"
            )
        return [(tree.put(node, action), 1 / len(actions)) for action in actions for _ in range(times)]
