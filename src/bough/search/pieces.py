"""The pieces of a search: how it selects, expands, evaluates, backs up and prunes."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from bough.rollout.cursor import PendingAction
from bough.search.node import SearchNode
from bough.search.tree import SearchTree

Proposal: TypeAlias = tuple[PendingAction, float]


@runtime_checkable
class Select(Protocol):
    """Selects the nodes of the next round."""

    def __call__(self, tree: SearchTree) -> Sequence[SearchNode]:
        """Nodes to execute and expand, or ends to count once more; an empty sequence ends the search.

        A node that occurs twice gets twice as many actions.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Scores a node; the highest score is selected, ties go to the first found."""

    def __call__(self, node: SearchNode) -> float:
        """The score; siblings are available through the node's parent."""
        ...


@runtime_checkable
class FixedScore(Score, Protocol):
    """A score that is constant after the round in which the node was found, so selectors compute it once."""

    @property
    def fixed(self) -> bool:
        """Whether the score is constant with the current settings."""
        ...


@runtime_checkable
class Hint(Protocol):
    """Returns a text that is added to the observation when an action is sampled."""

    @property
    def in_turn(self) -> bool:
        """Whether the hint depends on the actions sampled before, so that actions are sampled one after another."""
        ...

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The hint at a node where the actions `earlier` were already sampled; "" for none.

        Raises:
            BudgetExceeded: when it does not fit a budget; no action is sampled then.
        """
        ...


@runtime_checkable
class Expand(Protocol):
    """Proposes the actions at a node."""

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Propose actions at a node, `times` as many as usual; fewer where a budget ends it."""
        ...


@runtime_checkable
class Rate(Protocol):
    """Rates actions before they are executed; it may also set `SearchNode.cost` of each."""

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each of some children of a node [children].

        Raises:
            BudgetExceeded: when it does not fit a budget; the ratings stay unknown then.
        """
        ...


@runtime_checkable
class Evaluate(Protocol):
    """Estimates the values of nodes."""

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value of a node's state.

        nan means unknown: nothing is counted, and the node is evaluated again when it is selected again.

        Raises:
            BudgetExceeded: when it does not fit a budget; the value stays unknown.
            EngineFault: when the engine broke; the search retries `Search.retries` times.
        """
        ...


@runtime_checkable
class Backup(Protocol):
    """Propagates a value from a node to its ancestors."""

    def __call__(self, node: SearchNode) -> None:
        """Count the value of a node once: update `q` and `visits` of the node and of all its ancestors."""
        ...


@runtime_checkable
class Prune(Protocol):
    """Prunes nodes."""

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune nodes of the tree; `fresh` are the nodes that this round evaluated."""
        ...
