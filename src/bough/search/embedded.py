"""Semantic similarity of actions by the policy's hidden states."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from bough.needs import ON_POLICY, Need
from bough.rollout.budget import Usage
from bough.search.evaluate import CriticValue
from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.tree import SearchTree

NOTE = "Embedding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Another evaluation, and the embedding of the node's action, for `Cosine`; needs the policy's own weights.

    The embedding is the mean of the policy's last hidden states over the action's tokens, without the stop token: one
    more call for each node.

    Attributes:
        evaluate: The evaluation.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ON_POLICY.or_else("another evaluate, such as CriticValue()")})

    evaluate: Evaluate = CriticValue()

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
            ValueError: when the agent's policy is not at hand: a server's has no hidden states.
        """
        draft, rollout = node.draft, tree.rollout
        if draft is not None:
            embed = rollout.writer(draft).agent.embed
            if embed is None:
                raise ValueError(
                    "Embedded: got an agent without hidden states; need a run with a policy of its own, or "
                    "Sparse(alike=RougeL()) with another evaluate"
                )
            async with rollout.budget.reserve(Usage(calls=1)) as cost:
                cost.calls = 1
                text = draft.valued_text
                node.notes[NOTE] = await rollout.deadlines.until(
                    embed(text, max(1, len(text) - len(draft.cursor.text))),
                    owner=f"task {rollout.builder.task.id} node {node.number}",
                    thing=f"embedding of {len(text)} tokens",
                    deadline_s=rollout.limits.engine_deadline_s,
                )
        return await self.evaluate(tree, node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine:
    """The cosine of the embeddings of two actions, in [-1, 1]; needs `Embedded` in the search's `evaluate`."""

    def __call__(self, one: SearchNode, other: SearchNode) -> float:
        """The similarity.

        Raises:
            ValueError: when a node has no embedding.
        """
        if one is other:
            return 1.0
        first, second = _embedding(one), _embedding(other)
        norm = math.hypot(*first) * math.hypot(*second)
        return sum(x * y for x, y in zip(first, second, strict=True)) / norm if norm else 0.0


def _embedding(node: SearchNode) -> Sequence[float]:
    found = node.notes.get(NOTE)
    if found is None:
        raise ValueError(f"Cosine: got {node} without an embedding; need evaluate=Embedded(evaluate=...) in the search")
    return cast("Sequence[float]", found)
