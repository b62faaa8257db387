"""Backup rules: how the value of a node changes the estimates of its ancestors."""

import math
from dataclasses import dataclass
from typing import Annotated

from bough.piece import Above, AtLeast, Between, piece
from bough.search.node import SearchNode
from bough.search.score import known, value_before


@piece
class MeanBackup:
    """The mean of all values at and below a node, as in UCT (Kocsis and Szepesvári, 2006).

    Each evaluation counts once in its node and in each ancestor, discounted by the turns between:

        visits += 1        q += (gamma^turns * value - q) / visits

    The mean includes the node's own value. With `own=False` the own value is dropped once a descendant is evaluated: q
    is the mean of the children's q, weighted by their visits, which still count it (ReST-MCTS*, arXiv 2406.03816).

        own value .8, then a child of value 1     own: q .9     not own: q 1; visits 2 in either case

    With `inertia` the new q is mixed with the old one, so that an unfinished path has a lower q than its best end:
    MedS3's second rule (arXiv 2501.12051), where a node without an estimate starts at 0. Children of value .8 and .2,
    then 1 below the first, with inertia .5: .4, .45, .5583 at the top.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
        own: Whether the value of an inner node itself counts.
        inertia: Weight of the old q in the new q, with `own=False`, in [0, 1).
    """

    gamma: Annotated[float, Between(0, 1, above=True)] = 1.0
    own: bool = True
    inertia: Annotated[float, Between(0, 1, below=True)] = 0.0

    def __post_init__(self) -> None:
        if self.own and self.inertia:
            raise ValueError(f"MeanBackup.inertia: got {self.inertia} with own={self.own}; need 0, or own=false")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        value = node.value
        for here in reversed(node.path()):
            here.visits += 1
            if self.own or here is node:
                here.q = value if here.visits == 1 else here.q + (value - here.q) / here.visits
            else:
                visited = [child for child in here.children if child.visits]
                total = sum(child.visits * child.q for child in visited)
                below = self.gamma * total / sum(child.visits for child in visited)
                here.q = self.inertia * known(here.q) + (1 - self.inertia) * below
            value *= self.gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class NegamaxBackup:
    """The mean of all values at and below a node, for the seat whose action led there: zero-sum games of two seats.

    Values are those of the seat that the search is for; at the actions of the other seat they count negatively:

        q += (value - q) / visits    at an action of the own seat        q += (-value - q) / visits    at any other

    So the selection of the best child, for example by PUCT, takes the best action for each seat in turn. With one agent
    it is `MeanBackup`.
    """

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.path()):
            value = node.value if here.own else -node.value
            here.visits += 1
            here.q = value if here.visits == 1 else here.q + (value - here.q) / here.visits


@piece
class MaxBackup:
    """The best value found below a node: the return of a greedy agent, exact where the values are exact.

    An inner node's own value counts only until a descendant is evaluated.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
    """

    gamma: Annotated[float, Between(0, 1, above=True)] = 1.0

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.path()):
            here.visits += 1
            below = [child.q for child in here.children if not math.isnan(child.q)]
            here.q = self.gamma * max(below) if below else here.value


@piece
class SoftmaxBackup:
    """The soft maximum of the children, (1 / sharpness) log mean exp(sharpness * q) (DTS, arXiv 2506.20701).

    Experimental: written from the paper's abstract page. Children with q 1 and 0 and sharpness 1 give .6201. A child is
    weighted by its copies: they are samples of the policy, over which the mean is taken.

    Attributes:
        sharpness: Toward 0 the mean of the children, toward infinity the best of them; > 0.
    """

    sharpness: Annotated[float, Above(0)] = 1.0

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.path()):
            here.visits += 1
            below = [(self.sharpness * child.q, child.copies) for child in here.children if not math.isnan(child.q)]
            if not below:
                here.q = here.value
                continue
            top = max(found for found, _ in below)
            total = sum(copies * math.exp(found - top) for found, copies in below)
            here.q = (top + math.log(total / sum(copies for _, copies in below))) / self.sharpness


@piece
class SumBackup:
    """The sum of all values at and below a node, weighted by distance (DoraemonGPT, arXiv 2401.08392)."""

    decay: Annotated[float, AtLeast(0)] = 0.5

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for distance, here in enumerate(reversed(node.path())):
            here.visits += 1
            if here is node and not here.children:
                here.q = node.value
            else:
                found = 0.0 if math.isnan(here.q) else here.q
                here.q = found + node.value * math.exp(-self.decay * max(0, distance - 1))


@piece
class AdvantageBackup:
    """The advantage of a turn by the evaluations, plus the later ones, as in MCTS-DPO (arXiv 2405.00451).

        q = value - the parent's value + gamma * v          v: mean of the children's q, weighted by their visits

    Example: every value is .5, except 1.5 at the end of one path and -.5 at the others, so q is 1 and -1. With seven
    visits of the first and one of the second v is .75, and q of the node above, whose parent has value 0, is 1.25.

    The released code counts an evaluated child without visits as visited once; here an evaluation is a visit. It counts
    the root twice in each iteration, 16 after 8; here a visit is one evaluation at or below a node.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
    """

    gamma: Annotated[float, Between(0, 1, above=True)] = 1.0

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.path()):
            here.visits += 1
            before = value_before(here)
            below = [child for child in here.children if child.visits]
            ahead = sum(child.visits * child.q for child in below) / max(1, sum(child.visits for child in below))
            here.q = (before if math.isnan(here.value) else here.value) - before + self.gamma * ahead
