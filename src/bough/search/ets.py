"""Efficient tree search: keeps few, diverse nodes that share much of their paths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from bough.explore.text_similarity import rouge_l
from bough.piece import Above, AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.search.embedded import Cosine
from bough.search.node import SearchNode
from bough.search.pieces import Score
from bough.search.rebase import split
from bough.search.score import NodeValue
from bough.search.tree import SearchTree

Choice: TypeAlias = tuple[float, tuple[int, ...]]
"""The gain of a set of leaves, without the gain of its clusters, and the leaves."""

Item = TypeVar("Item")
MOST_CHOICES = 256


@runtime_checkable
class Similarity(Protocol):
    """The similarity of the actions of two nodes; a frozen dataclass, like every component."""

    def __call__(self, one: SearchNode, other: SearchNode) -> float:
        """The similarity, at most 1; 1 when they are equal."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RougeL:
    """ROUGE-L of the tokens of two actions (Lin 2004), F1."""

    def __call__(self, one: SearchNode, other: SearchNode) -> float:
        """The similarity."""
        return rouge_l(*(node.draft.tokens if node.draft else () for node in (one, other)))


@piece
class Sparse:
    """Keeps open nodes of high value that share their paths and differ from each other (ETS, arXiv 2502.13575).

    It keeps the set of open nodes that maximizes

        sum of shares - cost * size kept / size + spread * clusters kept / clusters

    shares: those of `RebaseAllocation`, over the width; size: of the open nodes and all their ancestors, counted once,
    in tokens that the node adds to the context, which are what the engine's KV cache holds. With per="node" it is the
    number of nodes, as in the paper, which stands for the cache.
    Clusters are formed by average linkage over the actions' similarity. With nodes of one size, cost 1, values .9 and
    .88 under one node and in one cluster, .5 under another: all three are kept with spread 1.4, the first two with 0.

    At cost 0 all stay, those of share 0 too, so that the shares of the others are those before: values .9, .75, .7, .7,
    .7, .6 share a width of 8 as 3, 2, 1, 1, 1, 0; without the last it would be 4, 2, 1, 1, 0.

    The result is exact: choices are combined from the leaves up, and one is dropped only where another is at least as
    good for every choice elsewhere. If a node has more than 256 such choices (it takes nine clusters below it), only
    the best of them are kept.

    Attributes:
        width: Width of the shares.
        temperature: Temperature of the shares.
        cost: Weight of the share of the size kept, >= 0; 1 in the paper.
        per: What the size counts: "token" or "node".
        spread: Weight of the share of clusters kept, >= 0; 1.4 to 1.5 in the paper.
        alike: Similarity of two actions: `Cosine` of the policy's hidden states, or `RougeL` of tokens. The paper uses
            the cosine of embeddings by a sentence model.
        cut: Largest average distance, 1 - similarity, within a cluster.
        by: Scores a node.
    """

    width: Annotated[int, AtLeast(1)] = 16
    temperature: Annotated[float, Above(0)] = 0.2
    cost: Annotated[float, AtLeast(0)] = 1.0
    spread: Annotated[float, AtLeast(0)] = 1.4
    per: Literal["token", "node"] = "token"
    alike: Similarity = Cosine()
    cut: float = 0.05
    by: Score = NodeValue()

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the other open nodes; none at cost 0, or when the budget has run out: some are not evaluated then."""
        del fresh
        if tree.spent or not self.cost:
            return
        leaves = sorted(tree.live(), key=lambda node: (-self.by(node), node.number))
        if len(leaves) < 2:
            return
        shares = split([self.by(node) for node in leaves], self.width, self.temperature)
        walks = [leaf.path() for leaf in leaves]
        size = {node.number: kv_tokens(node) if self.per == "token" else 1 for walk in walks for node in walk}
        kept = choose(
            [[node.number for node in walk] for walk in walks],
            [share / self.width for share in shares],
            clusters(leaves, self.alike, self.cut),
            cost=self.cost,
            spread=self.spread,
            size=size,
        )
        for index, leaf in enumerate(leaves):
            if index not in kept:
                tree.prune(leaf)


def kv_tokens(node: SearchNode) -> int:
    """The tokens that a node adds to the context of its parent: its action, and the observation after it."""
    before = 0 if node.draft is None else len(node.draft.cursor.text)
    if isinstance(node.at, Cursor):
        return max(1, len(node.at.text) - before)
    return max(1, 0 if node.draft is None else len(node.draft.tokens))


def clusters(items: Sequence[Item], alike: Callable[[Item, Item], float], cut: float) -> list[int]:
    """The cluster of each item: the two nearest on average are merged while their distance is at most `cut`."""
    groups = [[index] for index in range(len(items))]
    distances = [[1 - alike(one, other) for other in items] for one in items]

    def distance(pair: tuple[int, int]) -> float:
        one, other = groups[pair[0]], groups[pair[1]]
        return sum(distances[i][j] for i in one for j in other) / (len(one) * len(other))

    while len(groups) > 1:
        pairs = [(one, other) for one in range(len(groups)) for other in range(one + 1, len(groups))]
        nearest = min(pairs, key=distance)
        if distance(nearest) > cut:
            break
        groups[nearest[0]] += groups.pop(nearest[1])
    return [next(number for number, group in enumerate(groups) if index in group) for index in range(len(items))]


def choose(
    walks: Sequence[Sequence[int]],
    gains: Sequence[float],
    kinds: Sequence[int],
    *,
    cost: float,
    spread: float,
    size: Mapping[int, int] | None = None,
) -> set[int]:
    """The leaves of a tree, at least one, that maximize the sum in `Sparse`.

    Args:
        walks: The nodes from the root to each leaf, at least one leaf.
        gains: Share of each leaf.
        kinds: Cluster of each leaf, 0 to K - 1.
        cost: Weight of all nodes together.
        spread: Weight of all clusters together.
        size: Size of each node; None for nodes of one size.
    """
    size = size or dict.fromkeys((node for walk in walks for node in walk), 1)
    each = {node: cost * part / sum(size.values()) for node, part in size.items()}
    bonus = spread / len(set(kinds))
    # By node: its children, and the choices at and below it, by the clusters that they cover.
    below: dict[int, set[int]] = {}
    depth: dict[int, int] = {}
    found: dict[int, dict[frozenset[int], Choice]] = {}
    for leaf, walk in enumerate(walks):
        found[walk[-1]] = {frozenset(): (0.0, ()), frozenset({kinds[leaf]}): (gains[leaf] - each[walk[-1]], (leaf,))}
        depth |= {node: level for level, node in enumerate(walk)}
        for above, node in pairwise(walk):
            below.setdefault(above, set()).add(node)
    for node in sorted(below, key=lambda one: -depth[one]):
        choices: dict[frozenset[int], Choice] = {frozenset(): (0.0, ())}
        for child in sorted(below[node]):
            choices = _undominated(_joined(choices, found.pop(child)), bonus)
        found[node] = {
            covered: (gain - each[node] if leaves else gain, leaves) for covered, (gain, leaves) in choices.items()
        }
    (top,) = found.values()
    some = [(covered, choice) for covered, choice in top.items() if covered]
    _, (_, leaves) = max(some, key=lambda choice: choice[1][0] + bonus * len(choice[0]))
    return set(leaves)


def _joined(ones: dict[frozenset[int], Choice], others: dict[frozenset[int], Choice]) -> dict[frozenset[int], Choice]:
    """All pairs of choices of the two; the best for each set of clusters."""
    joined: dict[frozenset[int], Choice] = {}
    for covered, (gain, leaves) in ones.items():
        for more, (other_gain, other_leaves) in others.items():
            both = covered | more
            if both not in joined or gain + other_gain > joined[both][0]:
                joined[both] = (gain + other_gain, leaves + other_leaves)
    return joined


def _undominated(choices: dict[frozenset[int], Choice], bonus: float) -> dict[frozenset[int], Choice]:
    """The choices that no other beats by more than the clusters it lacks could add; () always stays."""
    ranked = sorted(choices.items(), key=lambda choice: -(choice[1][0] + bonus * len(choice[0])))
    kept: dict[frozenset[int], Choice] = {}
    for covered, (gain, leaves) in ranked:
        if covered and len(kept) >= MOST_CHOICES:
            continue
        beaten = any(other and rival - gain >= bonus * len(covered - other) for other, (rival, _) in kept.items())
        if not (covered and beaten):
            kept[covered] = (gain, leaves)
    return kept
