"""Efficient tree search: few places that share much of their past, and differ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, TypeAlias, runtime_checkable

from bough.explore.text_similarity import rouge_l
from bough.search import Score
from bough.search.node import SearchNode
from bough.search.rebase import rebase, split
from bough.search.score import NodeValue
from bough.search.search import Search
from bough.search.tree import SearchTree

Choice: TypeAlias = tuple[float, tuple[int, ...]]
"""What is gained by some leaves, without what clusters are worth, and which leaves."""

MOST_CHOICES = 256


@runtime_checkable
class Similarity(Protocol):
    """The similarity of two actions; a frozen dataclass, like every piece."""

    def __call__(self, one: Sequence[int], other: Sequence[int]) -> float:
        """The similarity of two token sequences, at most 1; 1 when they are equal."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RougeL:
    """ROUGE-L of the tokens of two actions (Lin 2004), F1."""

    def __call__(self, one: Sequence[int], other: Sequence[int]) -> float:
        """The similarity."""
        return rouge_l(one, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """Keeps open places that are worth much, share their past, and differ from each other (ETS, arXiv 2502.13575).

    Of all sets of open places the one is kept that makes most of

        sum of shares - cost * places kept / places + spread * clusters kept / clusters

    shares: those of `RebaseAllocation`, over the width; places: the open ones and all above them, counted once.
        Clusters are of
    equal kind by average linkage over the actions' similarity. With cost 1, worth .9 and .88 under one place and in one
    cluster, .5 under another: all three are kept with spread 1.4, the first two with 0.

    It is exact: choices are put together from the leaves up, and one is dropped only where another is at least as good
    whatever is chosen elsewhere. Should a place have more than 256 such choices (it takes nine clusters below it), the
    best of them go on.

    Attributes:
        width: Of the shares.
        temperature: Of the shares.
        cost: What the places kept cost, >= 0; 1 in the paper.
        spread: What it is worth to keep different places, >= 0; 1.4 to 1.5 in the paper.
        alike: Similarity of two actions. The paper takes the cosine of sentence embeddings.
        cut: Places are in one cluster up to this distance, 1 - similarity, on average.
        by: How promising a node is.
    """

    width: int = 16
    temperature: float = 0.2
    cost: float = 1.0
    spread: float = 1.4
    alike: Similarity = RougeL()
    cut: float = 0.05
    by: Score = NodeValue()

    def __post_init__(self) -> None:
        if self.width < 1 or not self.temperature > 0 or not self.cost >= 0 or not self.spread >= 0:
            raise ValueError(
                f"Sparse: got width={self.width}, temperature={self.temperature}, cost={self.cost}, "
                f"spread={self.spread}; need at least 1, more than 0, and 0 or more of the last two"
            )

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        del fresh
        leaves = sorted(tree.live(), key=lambda node: (-self.by(node), node.number))
        if len(leaves) < 2:
            return
        shares = split([self.by(node) for node in leaves], self.width, self.temperature)
        kept = choose(
            [[each.number for each in leaf.walk()] for leaf in leaves],
            [share / self.width for share in shares],
            clusters([leaf.draft.tokens if leaf.draft else () for leaf in leaves], self.alike, self.cut),
            cost=self.cost,
            spread=self.spread,
        )
        for index, leaf in enumerate(leaves):
            if index not in kept:
                tree.give_up(leaf)


def clusters(things: Sequence[Sequence[int]], alike: Similarity, cut: float) -> list[int]:
    """Number of the cluster of each thing: the two nearest on average are joined as long as they are within a cut."""
    groups = [[index] for index in range(len(things))]
    apart = [[1 - alike(one, other) for other in things] for one in things]

    def distance(pair: tuple[int, int]) -> float:
        one, other = groups[pair[0]], groups[pair[1]]
        return sum(apart[i][j] for i in one for j in other) / (len(one) * len(other))

    while len(groups) > 1:
        pairs = [(one, other) for one in range(len(groups)) for other in range(one + 1, len(groups))]
        nearest = min(pairs, key=distance)
        if distance(nearest) > cut:
            break
        groups[nearest[0]] += groups.pop(nearest[1])
    return [next(number for number, group in enumerate(groups) if index in group) for index in range(len(things))]


def choose(
    walks: Sequence[Sequence[int]],
    gains: Sequence[float],
    kinds: Sequence[int],
    *,
    cost: float,
    spread: float,
) -> set[int]:
    """The leaves of a tree, at least one, that make most of the sum in `Sparse`.

    Args:
        walks: The places from the root to each leaf, at least one leaf.
        gains: Share of each leaf.
        kinds: Cluster of each leaf, 0 to K - 1.
        cost: Of all places together.
        spread: Of all clusters together.
    """
    each = cost / len({place for walk in walks for place in walk})
    bonus = spread / len(set(kinds))
    # By place: its children, and what can be chosen at and below it, by the clusters that are covered.
    below: dict[int, set[int]] = {}
    depth: dict[int, int] = {}
    found: dict[int, dict[frozenset[int], Choice]] = {}
    for leaf, walk in enumerate(walks):
        found[walk[-1]] = {frozenset(): (0.0, ()), frozenset({kinds[leaf]}): (gains[leaf] - each, (leaf,))}
        depth |= {place: level for level, place in enumerate(walk)}
        for above, place in pairwise(walk):
            below.setdefault(above, set()).add(place)
    for place in sorted(below, key=lambda one: -depth[one]):
        choices: dict[frozenset[int], Choice] = {frozenset(): (0.0, ())}
        for child in sorted(below[place]):
            choices = _undominated(_joined(choices, found.pop(child)), bonus)
        found[place] = {
            covered: (gain - each if leaves else gain, leaves) for covered, (gain, leaves) in choices.items()
        }
    (top,) = found.values()
    some = [(covered, choice) for covered, choice in top.items() if covered]
    _, (_, leaves) = max(some, key=lambda choice: choice[1][0] + bonus * len(choice[0]))
    return set(leaves)


def _joined(ones: dict[frozenset[int], Choice], others: dict[frozenset[int], Choice]) -> dict[frozenset[int], Choice]:
    """Every choice of the one with every choice of the other; the best for each set of clusters."""
    joined: dict[frozenset[int], Choice] = {}
    for covered, (gain, leaves) in ones.items():
        for more, (other_gain, other_leaves) in others.items():
            both = covered | more
            if both not in joined or gain + other_gain > joined[both][0]:
                joined[both] = (gain + other_gain, leaves + other_leaves)
    return joined


def _undominated(choices: dict[frozenset[int], Choice], bonus: float) -> dict[frozenset[int], Choice]:
    """Without those that another beats by more than the clusters that it lacks could be worth; () always stays."""
    ranked = sorted(choices.items(), key=lambda choice: -(choice[1][0] + bonus * len(choice[0])))
    kept: dict[frozenset[int], Choice] = {}
    for covered, (gain, leaves) in ranked:
        if covered and len(kept) >= MOST_CHOICES:
            continue
        beaten = any(other and rival - gain >= bonus * len(covered - other) for other, (rival, _) in kept.items())
        if not (covered and beaten):
            kept[covered] = (gain, leaves)
    return kept


def ets(width: int = 16, temperature: float = 0.2, cost: float = 1.0, spread: float = 1.4) -> Search:
    """ETS (arXiv 2502.13575): REBASE on places that share much of their past and differ; needs a critic.

    See `Sparse` for what is kept at each level, and `rebase` for the rest.
    """
    sparse = Sparse(width=width, temperature=temperature, cost=cost, spread=spread)
    return replace(rebase(width=width, temperature=temperature), prune=(sparse,))
