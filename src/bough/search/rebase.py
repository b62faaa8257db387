"""REBASE: a fixed width, allocated to the open nodes by their scores."""

import math
from collections.abc import Sequence
from typing import Annotated

from bough.piece import Above, AtLeast, piece
from bough.search.node import SearchNode
from bough.search.pieces import Score
from bough.search.score import NodeValue
from bough.search.tree import SearchTree


@piece
class RebaseAllocation:
    """Allocates a width to the open nodes by the softmax of their scores: REBASE (arXiv 2408.00724).

    In the order of decreasing scores, a node gets its share of the remaining width, rounded up:

        n = ceil(left * w / sum of w from here down),  w = exp(score / temperature)          left -= n

    Width 8, scores .9, .7, .3, temperature .2: 6, 2, 0. Nodes with 0 are pruned. Rounding up starves the tail: four
    equal scores that share 3 get 1, 1, 1 and 0. Each ended path reduces the width by one for good, so that there are at
    most `width` ends; the search is over when nothing is left.

    Attributes:
        width: Number of actions per level.
        temperature: Toward 0 all goes to the best, toward infinity all get the same; > 0.
        by: Scores a node.
    """

    width: Annotated[int, AtLeast(1)] = 16
    temperature: Annotated[float, Above(0)] = 0.2
    by: Score = NodeValue()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        ranked = sorted(tree.live(), key=lambda node: (-self.by(node), node.number))
        left = self.width - sum(node.copies for node in tree.nodes if node.ended)
        shares = split([self.by(node) for node in ranked], max(0, left), self.temperature)
        for node, share in zip(ranked, shares, strict=True):
            if not share:
                tree.prune(node)
        return [node for node, share in zip(ranked, shares, strict=True) for _ in range(share)]


def split(scores: Sequence[float], width: int, temperature: float) -> list[int]:
    """Integer shares of a width, for scores in decreasing order; see `RebaseAllocation`."""
    if not scores:
        return []
    weights = [math.exp((score - scores[0]) / temperature) for score in scores]
    shares: list[int] = []
    for index, weight in enumerate(weights):
        rest = sum(weights[index:])
        # Where the remaining weights underflow to 0, the first of them gets the remaining width.
        share = min(width, math.ceil(width * weight / rest if rest else width))
        shares.append(share)
        width -= share
    return shares
