"""What values found below mean above."""

import math
from dataclasses import dataclass

from bough.explore.search.node import SearchNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of all values found below, as in UCT (Kocsis and Szepesvári, 2006).

    Every evaluation counts once in each node from where it was made up to the root, discounted by the turns between:

        visits += 1        q += (gamma^turns * value - q) / visits

    A node's own value is one of those that it is the mean of. With `own=False` it is worth nothing as soon as something
    below it was evaluated: q is the mean of the children's q, weighted by their visits, which still count it
    (ReST-MCTS*, arXiv 2406.03816).

        own value .8, then a child worth 1     own: q .9     not own: q 1; visits 2 in either case

    Attributes:
        gamma: Discount of a turn, in (0, 1].
        own: Whether the value of an inner node itself counts.
    """

    gamma: float = 1.0
    own: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1:
            raise ValueError(f"Mean.gamma: got {self.gamma}; need a number above 0 and up to 1")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        value = node.value
        for here in reversed(node.walk()):
            here.visits += 1
            if self.own or here is node:
                here.q = value if here.visits == 1 else here.q + (value - here.q) / here.visits
            else:
                known = [child for child in here.children if child.visits]
                total = sum(child.visits * child.q for child in known)
                here.q = self.gamma * total / sum(child.visits for child in known)
            value *= self.gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class Max:
    """The best value found below: what an agent gets that goes where it knows to go. Exact where values are.

    An inner node's own value counts only as long as nothing below it was evaluated.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1:
            raise ValueError(f"Max.gamma: got {self.gamma}; need a number above 0 and up to 1")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.walk()):
            here.visits += 1
            below = [child.q for child in here.children if not math.isnan(child.q)]
            here.q = self.gamma * max(below) if below else here.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Soft:
    """The soft maximum of the children, (1 / sharpness) log mean exp(sharpness * q) (DTS, project page of the paper).

    Experimental: the paper's page was read, not its text. Children at 1 and 0 with sharpness 1 make .6201.

    Attributes:
        sharpness: Toward 0 the mean of the children, toward infinity the best of them; > 0.
    """

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        if not self.sharpness > 0:
            raise ValueError(f"Soft.sharpness: got {self.sharpness}; need a number above 0")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.walk()):
            here.visits += 1
            below = [self.sharpness * child.q for child in here.children if not math.isnan(child.q)]
            if not below:
                here.q = here.value
                continue
            top = max(below)
            mean = sum(math.exp(each - top) for each in below) / len(below)
            here.q = (top + math.log(mean)) / self.sharpness
