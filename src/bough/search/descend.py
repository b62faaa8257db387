"""The tree policy of Monte-Carlo tree search: a descent from the root to a node to evaluate or expand."""

import math
import random
from typing import Annotated

from bough.piece import AtLeast, piece
from bough.search.node import SearchNode
from bough.search.pieces import Score
from bough.search.score import Uct
from bough.search.tree import SearchTree


@piece
class Descend:
    """The tree policy of Monte-Carlo tree search: descends from child to child to a node to evaluate or expand.

    It selects the best child, ties to the first found. With a `sharpness` it draws a child with probability

        copies * exp(sharpness * score) / sum over the children

    (softmax; DTS, arXiv 2506.20701, with `QValue`): scores 1 and 0, sharpness 1: .731 and .269.

    With `revisit` it can select the end of a path again, which counts once more. Visits then concentrate on good ends,
    as the convergence of UCT needs; where every end is known this costs nothing and continues until the rounds are
    over. Without it, nodes below which nothing is open are skipped, and the search ends when no other is left
    (rStar-Math, arXiv 2501.04519; CPL, 2409.08642). Either way a search ends when all nodes are pruned; the released
    code of LATS (2310.04406) loops forever.

    Attributes:
        by: Scores the children.
        revisit: Whether known ends count again.
        sharpness: Inverse temperature of the draw; None for the best child.
    """

    by: Score = Uct()
    revisit: bool = True
    sharpness: Annotated[float | None, AtLeast(0)] = None

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The node."""
        node = tree.root
        rng = None
        while node.expanded:
            children = [child for child in node.children if not (child.pruned if self.revisit else child.closed)]
            if not children:
                return []
            if self.sharpness is None:
                node = max(children, key=lambda child: (self.by(child), -child.number))
            else:
                rng = rng or self._rng(tree)
                node = rng.choices(children, self._weights(children, self.sharpness))[0]
        return [] if node.pruned else [node]

    def _weights(self, children: list[SearchNode], sharpness: float) -> list[float]:
        scores = [self.by(child) for child in children]
        top = max(scores)
        return [
            child.copies * (1.0 if score == top else math.exp(sharpness * (score - top)))
            for child, score in zip(children, scores, strict=True)
        ]

    def _rng(self, tree: SearchTree) -> random.Random:
        """A new random generator for every descent."""
        number: int = tree.notes.setdefault("Descend", 0)
        tree.notes["Descend"] = number + 1
        return random.Random(tree.rollout.seed("descend", number))
