"""A place that a search knows, and what is thought of it."""

from dataclasses import dataclass, field
from typing import TypeAlias, Union

from bough.rollout.cursor import Cursor, PendingAction
from bough.tree import Outcome

MaybeNode: TypeAlias = Union["SearchNode", None]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SearchNode:
    """An action, and where it leads: unknown before it is carried out.

    Attributes:
        number: 0 for the root, then in order of discovery; the last word wherever two are equally good.
        parent: Where the action was written; None at the root.
        draft: The action; None at the root.
        at: Where it led, or how the path ended; None while nobody has carried it out.
        depth: Turns from the root.
        reward: What the environment paid from the root to here.
        success: Whether the path ended with the task solved.
        prior: How likely the policy finds the action, as whoever wrote it says.
        guess: What a rating says of the action before it is carried out; nan when nobody was asked.
        copies: How often the same action was written here.
        value: What the evaluation says of this place alone; nan before it was asked.
        q: What the search now thinks of going here: `value`, or what was found below; nan before the first visit.
        visits: How many evaluations, here and below, q is made of.
        children: By discovery.
        asked: How often children were asked for.
        expanded: Whether no more of them will be.
        closed: Whether nothing is open here or below.
        pruned: Whether the search has given up on it; always closed.
        notes: What pieces remember about it, by the name of the piece.
    """

    number: int
    parent: MaybeNode
    draft: PendingAction | None = None
    at: Cursor | Outcome | None = None
    depth: int = 0
    reward: float = 0.0
    success: bool = False
    prior: float = 1.0
    guess: float = float("nan")
    copies: int = 1
    value: float = float("nan")
    q: float = float("nan")
    visits: int = 0
    children: list["SearchNode"] = field(default_factory=list["SearchNode"])
    asked: int = 0
    expanded: bool = False
    closed: bool = False
    pruned: bool = False
    notes: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def action(self) -> str:
        """What is done; "" at the root."""
        return "" if self.draft is None else self.draft.parsed.action

    @property
    def ended(self) -> bool:
        """Whether the path ended here, other than by a fault."""
        return isinstance(self.at, Outcome) and self.at is not Outcome.FAILED

    @property
    def live(self) -> bool:
        """Whether it can be carried out, or written on at."""
        return not self.closed and not self.expanded

    def walk(self) -> list["SearchNode"]:
        """The nodes from the root to here, both included."""
        nodes: list[SearchNode] = [self]
        while nodes[-1].parent is not None:
            nodes.append(nodes[-1].parent)
        return nodes[::-1]

    def __repr__(self) -> str:
        words = " > ".join(node.action for node in self.walk()[1:])
        return f"SearchNode({self.number}: {words or 'root'}, q={self.q:.3g}, visits={self.visits})"
