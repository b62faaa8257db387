"""What values found below mean above."""

import math
from dataclasses import dataclass

from bough.search.node import SearchNode
from bough.search.score import known


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanBackup:
    """The mean of all values found below, as in UCT (Kocsis and Szepesvári, 2006).

    Every evaluation counts once in each node from where it was made up to the root, discounted by the turns between:

        visits += 1        q += (gamma^turns * value - q) / visits

    A node's own value is one of those that it is the mean of. With `own=False` it is worth nothing as soon as something
    below it was evaluated: q is the mean of the children's q, weighted by their visits, which still count it
    (ReST-MCTS*, arXiv 2406.03816).

        own value .8, then a child worth 1     own: q .9     not own: q 1; visits 2 in either case

    With `inertia` some of what was thought before stays, so that half a way is not as sure as its best end: MedS3's
    second rule (arXiv 2501.12051), where a node of which nothing was thought begins at 0. Children worth .8 and .2,
    then 1 below the first, with inertia .5: .4, .45, .5583 at the top.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
        own: Whether the value of an inner node itself counts.
        inertia: Weight of the q before in the q after, with `own=False`, in [0, 1).
    """

    gamma: float = 1.0
    own: bool = True
    inertia: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1:
            raise ValueError(f"MeanBackup.gamma: got {self.gamma}; need a number above 0 and up to 1")
        if not 0 <= self.inertia < 1 or (self.own and self.inertia):
            raise ValueError(
                f"MeanBackup.inertia: got {self.inertia} with own={self.own}; need a number from 0 to below 1, and own=false"
            )

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        value = node.value
        for here in reversed(node.walk()):
            here.visits += 1
            if self.own or here is node:
                here.q = value if here.visits == 1 else here.q + (value - here.q) / here.visits
            else:
                looked = [child for child in here.children if child.visits]
                total = sum(child.visits * child.q for child in looked)
                below = self.gamma * total / sum(child.visits for child in looked)
                here.q = self.inertia * known(here.q) + (1 - self.inertia) * below
            value *= self.gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxBackup:
    """The best value found below: what an agent gets that goes where it knows to go. Exact where values are.

    An inner node's own value counts only as long as nothing below it was evaluated.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1:
            raise ValueError(f"MaxBackup.gamma: got {self.gamma}; need a number above 0 and up to 1")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.walk()):
            here.visits += 1
            below = [child.q for child in here.children if not math.isnan(child.q)]
            here.q = self.gamma * max(below) if below else here.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxBackup:
    """The soft maximum of the children, (1 / sharpness) log mean exp(sharpness * q) (DTS, arXiv 2506.20701).

    Experimental: the paper's page was read, not its text. Children at 1 and 0 with sharpness 1 make .6201. A child
    weighs as much as it has copies: they are samples of the policy, over which the mean is.

    Attributes:
        sharpness: Toward 0 the mean of the children, toward infinity the best of them; > 0.
    """

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        if not self.sharpness > 0:
            raise ValueError(f"SoftmaxBackup.sharpness: got {self.sharpness}; need a number above 0")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.walk()):
            here.visits += 1
            below = [(self.sharpness * child.q, child.copies) for child in here.children if not math.isnan(child.q)]
            if not below:
                here.q = here.value
                continue
            top = max(found for found, _ in below)
            total = sum(copies * math.exp(found - top) for found, copies in below)
            here.q = (top + math.log(total / sum(copies for _, copies in below))) / self.sharpness


@dataclass(frozen=True, slots=True, kw_only=True)
class SumBackup:
    """Every value is added to all nodes above it, less to those further above (DoraemonGPT, arXiv 2401.08392).

        q += value * exp(-decay * (d - 1))          d: turns from the node up to the one above, 1, 2, 3 ...

    A success, 1, adds 1, .6065, .3679 to the three nodes above with decay .5; give `Search.lost` -1, and a failure
    takes as much away. The released code adds it instead, and leaves the root out. q is a sum, not a mean: what is
    tried often counts more.

    Attributes:
        decay: How fast it fades, 0 or more.
    """

    decay: float = 0.5

    def __post_init__(self) -> None:
        if not self.decay >= 0:
            raise ValueError(f"SumBackup.decay: got {self.decay}; need 0 or more")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for distance, here in enumerate(reversed(node.walk())):
            here.visits += 1
            if here is node and not here.children:
                here.q = node.value
            else:
                found = 0.0 if math.isnan(here.q) else here.q
                here.q = found + node.value * math.exp(-self.decay * max(0, distance - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageBackup:
    """What a turn gained by the evaluations, and what comes after it, as in MCTS-DPO (arXiv 2405.00451).

        q = value - the parent's value + gamma * v          v: mean of the children's q, weighted by their visits

    Everything worth .5, but the end of one path 1.5 and of the others -.5, q 1 and -1: where seven visits went to the
    first and one to the second, v is .75, and q of the place above, whose parent is worth 0, 1.25.

    The released code takes a child that was evaluated and not yet visited for visited once; here an evaluation is a
    visit. It counts the root twice in each iteration, 16 after 8; here a visit is one evaluation at or below a node.

    Attributes:
        gamma: Discount of a turn, in (0, 1].
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1:
            raise ValueError(f"AdvantageBackup.gamma: got {self.gamma}; need a number above 0 and up to 1")

    def __call__(self, node: SearchNode) -> None:
        """Count the node's value."""
        for here in reversed(node.walk()):
            here.visits += 1
            before = 0.0 if here.parent is None or math.isnan(here.parent.value) else here.parent.value
            below = [child for child in here.children if child.visits]
            ahead = sum(child.visits * child.q for child in below) / max(1, sum(child.visits for child in below))
            here.q = (before if math.isnan(here.value) else here.value) - before + self.gamma * ahead
