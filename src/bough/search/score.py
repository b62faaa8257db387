"""Scores of nodes."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from bough.piece import Above, AtLeast, Between, piece
from bough.search.node import SearchNode


@piece
class Uct:
    """UCT (Kocsis and Szepesvári, 2006): the value estimate, plus a bonus for few visits.

        q + c * sqrt(ln N / n)          n: visits of the node, N: of its parent

    N counts every evaluation at and below the parent once. q is already a mean: it is not divided by n again (LATS's
    released code does). With c = .7 * sqrt(2), q of .8 and .2 after 2 and 1 visits, N = 3: 1.5337 and 1.2376
    (ReST-MCTS*).

    Attributes:
        c: Weight of the bonus, >= 0: sqrt(2) for values in [0, 1] (UCB1), .7 * sqrt(2) in ReST-MCTS* (arXiv
            2406.03816), 2 in rStar-Math (2501.04519), .25 in Agent-R (2501.11425).
        unvisited: Score of a node without a visit: more than all others ("first"), or `bonus` plus its rating, which
            counts as 0 when it is unknown ("rating").
        bonus: Bonus of "rating"; 1 in ReST-MCTS*, 0 in rStar-Math.
    """

    c: Annotated[float, AtLeast(0)] = math.sqrt(2)
    unvisited: Literal["first", "rating"] = "first"
    bonus: float = 0.0

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        if not node.visits:
            return math.inf if self.unvisited == "first" else self.bonus + rating_of(node)
        above = 0 if node.parent is None else node.parent.visits
        return node.q + self.c * math.sqrt(math.log(max(1, above)) / node.visits)


@piece
class Puct:
    """PUCT (AlphaZero, arXiv 1712.01815): the value estimate, plus a bonus for a high prior and few visits.

        q + c * prior * sqrt(N) / (1 + n)          n: visits of the node, N: of its parent

    A node without a visit has q 0, and N counts every evaluation at and below the parent once (MCTS-DPO's released code
    counts the root's twice). Priors .5, one reward .99 found below the first of two, c = 2.5: 1.615 and 1.25 (ProRAG,
    2601.21912, divides a sum that is discounted once less and gets 1.625).

    With a `base` b the weight grows with N: c + ln((N + b + 1) / b). With `log`, sqrt(N) becomes sqrt(ln N), which is 0
    up to N = 1. RethinkMCTS (2409.09584) has c = 4, b = 10, log, and `MaxBackup`.

    Attributes:
        c: Weight of the bonus, >= 0: 1.5 in AlphaMath (2405.03553) and CPL (2409.08642), 1 in MCTS-DPO (2405.00451).
        base: Base b of the growing weight, > 0; None for a constant weight.
        log: Whether the bonus has sqrt(ln N) in place of sqrt(N).
    """

    c: Annotated[float, AtLeast(0)] = 1.5
    base: Annotated[float | None, Above(0)] = None
    log: bool = False

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        above = 0 if node.parent is None else node.parent.visits
        found = node.q if node.visits else 0.0
        weight = self.c + (0.0 if self.base is None else math.log((above + self.base + 1) / self.base))
        return found + weight * node.prior * math.sqrt(math.log(max(1, above)) if self.log else above) / (
            1 + node.visits
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QValue:
    """The q of a node; 0 before its first visit."""

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return known(node.q)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitCount:
    """The visits of a node: the decision rule of classic Monte-Carlo tree search."""

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return float(node.visits)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeValue:
    """The node's own value; that of its parent before the node is executed.

    The latter is the frontier order of Tree Search for LM Agents (arXiv 2407.01476), which executes actions when they
    are selected. A child of a node without an evaluation scores 0.
    """

    fixed: ClassVar[bool] = True

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        place = node if node.at is not None or node.parent is None else node.parent
        return value_of(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedValue:
    """The rating of the action; 0 without one."""

    fixed: ClassVar[bool] = True

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        return rating_of(node)


@piece
class AStarCost:
    """A*'s order: minus the cost so far, plus an evaluation or rating that estimates minus the cost to go.

        -weight * cost + value          value: minus an estimate of the cost from here to success

    Each action costs one turn unless a rating sets `SearchNode.cost`, as ToolChain*'s does.
    It needs an estimate that never exceeds the true turns to go, and one path kept to each state (`DedupeStates`). Then
    the first success is a shortest path where actions are rated before they are executed, and within `Bounded` where
    states are evaluated. Ties go to the first found; `Best(deepest=True)` takes the deepest, and evaluates fewer nodes.

    Attributes:
        weight: 1 for A*, 0 for a greedy search, between them for weighted A*.
    """

    fixed: ClassVar[bool] = True

    weight: Annotated[float, Between(0, 1)] = 1.0

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        rated = math.isnan(node.value) and (node.at is None or not math.isnan(node.rating))
        ahead = rating_of(node) if rated else value_of(node)
        return ahead - self.weight * node.path_cost


@piece
class Likelihood:
    """Length-normalized likelihood of a path: sum of the actions' mean token log-probabilities over depth^alpha.

    BFS-Prover's order (arXiv 2502.03438). Sums of -.2, -.8, -1.5 at depths 1, 2, 3: with alpha 1 -.2, -.4, -.5, with 2
    -.2, -.2, -.1667. Above 1 deep nodes win, even if unlikely: a node at -.35 and depth 1 waits.

    Attributes:
        alpha: 0 for the plain sum, 1 for its mean; the released script uses 2.
    """

    fixed: ClassVar[bool] = True

    alpha: Annotated[float, AtLeast(0)] = 1.0

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        drafts = [each.draft for each in node.path() if each.draft is not None]
        total = sum(draft.logprob / max(1, draft.sampled_tokens) for draft in drafts)
        return total / max(1, node.depth) ** self.alpha


def known(estimate: float) -> float:
    """An estimate; 0 where it is unknown."""
    return 0.0 if math.isnan(estimate) else estimate


def value_of(node: SearchNode) -> float:
    """The own value of a node, as selection reads it; see `rating_of`."""
    return _estimate(node, "value")


def rating_of(node: SearchNode) -> float:
    """The rating of a node, as selection reads it; 0 where it is unknown.

    An unjudged node stands where the others of its state stand: it has the mean of its siblings that have a rating,
    else that of its parent.
    """
    return _estimate(node, "rating")


def value_before(node: SearchNode) -> float:
    """The value of the nearest ancestor that has one; 0 without one."""
    above = node.parent
    while above is not None and math.isnan(above.value):
        above = above.parent
    return 0.0 if above is None else above.value


def _estimate(node: SearchNode, name: Literal["value", "rating"]) -> float:
    own = getattr(node, name)
    if not math.isnan(own) or not node.unjudged or node.parent is None:
        return known(own)
    beside = [found for each in node.parent.children if not math.isnan(found := getattr(each, name))]
    return math.fsum(beside) / len(beside) if beside else _estimate(node.parent, name)
