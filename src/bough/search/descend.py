"""Going down a tree, child by child, to a place where something is left to be done."""

import math
import random
from dataclasses import dataclass

from bough.search import Score
from bough.search.node import SearchNode
from bough.search.score import Uct
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Descend:
    """The tree policy of Monte-Carlo tree search: from child to child, down to a place to evaluate or write at.

    It goes to the best child, the first found of equals; with a `sharpness` to one that is drawn with probability

        copies * exp(sharpness * score) / sum over the children

    (softmax; DTS, arXiv 2506.20701, with `QValue`): scores 1 and 0, sharpness 1: .731 and .269.

    With `revisit` it may come to the end of a path again, and count it once more, so that visits gather where it is
    good, as the convergence of UCT needs; where all is known it goes on doing that, which costs nothing, until the
    rounds of the search are over. Without, nodes below which nothing is open are passed over, and the search ends when
    there is none else (rStar-Math, arXiv 2501.04519; CPL, 2409.08642). Either way a search ends when all is given up;
    the released code of LATS (2310.04406) looks for another node forever.

    Attributes:
        by: Which child is best.
        revisit: Whether known ends count again.
        sharpness: None for the best child.
    """

    by: Score = Uct()
    revisit: bool = True
    sharpness: float | None = None

    def __post_init__(self) -> None:
        if self.sharpness is not None and not 0 <= self.sharpness < math.inf:
            raise ValueError(f"Descend.sharpness: got {self.sharpness}; need 0 or more, or None for the best child")

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The place."""
        node = tree.root
        luck = None
        while node.expanded:
            children = [child for child in node.children if not (child.pruned if self.revisit else child.closed)]
            if not children:
                return []
            if self.sharpness is None:
                node = max(children, key=lambda child: (self.by(child), -child.number))
            else:
                luck = luck or self._luck(tree)
                node = luck.choices(children, self._chances(children, self.sharpness))[0]
        return [] if node.pruned else [node]

    def _chances(self, children: list[SearchNode], sharpness: float) -> list[float]:
        scores = [self.by(child) for child in children]
        top = max(scores)
        return [
            child.copies * (1.0 if score == top else math.exp(sharpness * (score - top)))
            for child, score in zip(children, scores, strict=True)
        ]

    def _luck(self, tree: SearchTree) -> random.Random:
        """A new one for every way down."""
        number: int = tree.notes.setdefault("Descend", 0)
        tree.notes["Descend"] = number + 1
        return random.Random(tree.rollout.seed("descend", number))
