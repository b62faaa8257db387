"""A node of a search, with its estimates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from bough.rollout.cursor import Cursor, PendingAction
from bough.tree import Outcome

MaybeNode: TypeAlias = Union["SearchNode", None]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SearchNode:
    """An action and the state after it, which is unknown before the action is executed.

    Attributes:
        number: 0 for the root, then in order of discovery; breaks ties.
        parent: The node at which the action was sampled; None at the root.
        draft: The action; None at the root.
        at: The cursor after the action, or the outcome of the path; None before it is executed.
        depth: Turns from the root.
        reward: Sum of the environment's rewards from the root to here.
        success: Whether the path ended with the task solved.
        own: Whether the action is one of the seat that the search is for; False for those of other seats.
        prior: Probability of the action under the policy, as `Expand` computes it.
        rating: Rating of the action before it is executed; nan without a rating.
        cost: Cost of the action, for `AStarCost`: 1, a turn, unless a rating sets another.
        copies: How often the same action was sampled here.
        value: Value of this node alone, by the evaluation; nan before it.
        q: Current value estimate from `value` and the values below; nan before the first visit.
        visits: Number of evaluations, at this node and below, in q.
        children: In order of discovery.
        expansions: Number of expansions so far.
        expanded: Whether no more children will be added.
        closed: Whether neither the node nor any descendant is open.
        pruned: Whether the node is pruned; pruned nodes are closed.
        unjudged: Whether a model was asked for the value or the rating and gave none: no answer, or none that is read.
        notes: State of components for this node, by the name of the component.
    """

    number: int
    parent: MaybeNode
    draft: PendingAction | None = None
    at: Cursor | Outcome | None = None
    depth: int = 0
    reward: float = 0.0
    success: bool = False
    own: bool = True
    prior: float = 1.0
    rating: float = float("nan")
    cost: float = 1.0
    copies: int = 1
    value: float = float("nan")
    q: float = float("nan")
    visits: int = 0
    children: list["SearchNode"] = field(default_factory=list["SearchNode"])
    expansions: int = 0
    expanded: bool = False
    closed: bool = False
    pruned: bool = False
    unjudged: bool = False
    notes: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def action(self) -> str:
        """The text of the action; "" at the root."""
        return "" if self.draft is None else self.draft.parsed.text

    @property
    def ended(self) -> bool:
        """Whether the path ended here, other than by a fault."""
        return isinstance(self.at, Outcome) and self.at is not Outcome.FAILED

    @property
    def path_cost(self) -> float:
        """The sum of the costs of the actions from the root: the depth, where no rating sets a cost."""
        return sum(node.cost for node in self.path()[1:])

    @property
    def live(self) -> bool:
        """Whether the node can be executed or expanded."""
        return not self.closed and not self.expanded

    def path(self) -> list["SearchNode"]:
        """The nodes from the root to this one, both included."""
        nodes: list[SearchNode] = [self]
        while nodes[-1].parent is not None:
            nodes.append(nodes[-1].parent)
        return nodes[::-1]

    def __repr__(self) -> str:
        actions = " > ".join(node.action for node in self.path()[1:])
        return f"SearchNode({self.number}: {actions or 'root'}, q={self.q:.3g}, visits={self.visits})"


def mean_vote(node: SearchNode, votes: Sequence[float | None]) -> float:
    """The mean of the votes on a node that have a value; nan without any, and the node is unjudged."""
    known = [vote for vote in votes if vote is not None]
    node.unjudged = not known
    return sum(known) / len(known) if known else math.nan
