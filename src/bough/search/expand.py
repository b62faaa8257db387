"""Proposals of actions at a node."""

import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.search.node import SearchNode
from bough.search.pieces import Hint, Proposal
from bough.search.tree import SearchTree


@piece
class Sample:
    """A fixed number of samples of the policy, all concurrent.

    Actions sampled with a hint can't be reinforced: the hint is not in the prompt of later rollouts.

    Attributes:
        width: Number of samples.
        prior: Probability of an action under the policy: the exponential of its mean token log-probability ("tokens",
            AlphaMath, arXiv 2405.03553), its probability ("action"), or one over the number of samples ("even").
        hint: Text added to the observation; None for none. With a hint that depends on earlier samples, actions are
            sampled one after another.
        root_width: Number of samples at the first node of the search; None for `width`.
    """

    width: Annotated[int, AtLeast(1)] = 4
    prior: Literal["tokens", "action", "even"] = "tokens"
    hint: Hint | None = None
    root_width: Annotated[int | None, AtLeast(1)] = None

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Sample actions at a node."""
        at_root = node.parent is None and self.root_width is not None
        count = (self.root_width or self.width if at_root else self.width) * times
        most = [tree.max_cost(node)] * count
        if self.hint is None:
            drafts = await tree.together((tree.sample(node) for _ in range(count)), most)
        elif self.hint.in_turn:
            drafts = [draft async for draft in self._in_turn(tree, node, count, self.hint)]
        else:
            hint = await tree.within_budget(self.hint(tree, node, _written(node)))
            calls = [tree.sample(node, hint=hint) for _ in range(count)] if hint is not None else []
            drafts = await tree.together(calls, most[: len(calls)])
        return [(draft, self._prior(draft, count)) for draft in drafts if draft is not None]

    async def _in_turn(
        self, tree: SearchTree, node: SearchNode, count: int, hint: Hint
    ) -> AsyncGenerator[PendingAction | None, None]:
        """Sample one after another, each with a hint on those before it."""
        earlier = _written(node)
        for _ in range(count):
            text = await tree.within_budget(hint(tree, node, earlier))
            draft = None if text is None else await tree.sample(node, hint=text)
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
    """All admissible actions of the state, equally likely; needs an environment that lists them.

    They cost nothing, and are not samples of the policy, so they can't be reinforced.
    """

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Add the actions at a node.

        Raises:
            ValueError: when the state has no list of admissible actions.
        """
        actions = node.at.state.admissible if isinstance(node.at, Cursor) else None
        if actions is None:
            raise ValueError(
                f"Admissible: got a state without admissible actions at {node}; need an environment that sets "
                "State.admissible, or expand=Sample()"
            )
        return [(tree.force_action(node, action), 1 / len(actions)) for action in actions for _ in range(times)]
