"""Selection by a draw from all open nodes, and a limit on the number of ended paths."""

import math
import random
from collections.abc import Sequence
from typing import Annotated

from bough.piece import AtLeast, piece
from bough.search.finish_path_first import FinishPathFirst
from bough.search.node import SearchNode
from bough.search.pieces import Score, Select
from bough.search.score import QValue
from bough.search.tree import SearchTree


@piece
class DrawOpen:
    """Draws one of all open nodes, at any depth, by a soft maximum of their scores (DoraemonGPT, arXiv 2401.08392).

        probability of a node = exp(sharpness * score) / sum over all open nodes

    `Descend(sharpness=...)` draws from child to child instead, so that a deep node needs a draw at each of its
    ancestors. Scores 1 and .5, sharpness 1: .622 and .378.

    Attributes:
        by: Scores a node.
        sharpness: Inverse temperature, >= 0.
    """

    by: Score = QValue()
    sharpness: Annotated[float, AtLeast(0)] = 1.0

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The node."""
        nodes = tree.live()
        if not nodes:
            return []
        number: int = tree.notes.setdefault("DrawOpen", 0)
        tree.notes["DrawOpen"] = number + 1
        scores = [self.by(node) for node in nodes]
        top = max(scores)
        weights = [math.exp(self.sharpness * (score - top)) for score in scores]
        return random.Random(tree.rollout.seed("draw", number)).choices(nodes, weights)


@piece
class UntilEnds:
    """Ends the search when `max_ends` paths have ended.

    Attributes:
        max_ends: Number of ended paths.
        then: Selects the nodes before that.
    """

    max_ends: Annotated[int, AtLeast(1)] = 3
    then: Select = FinishPathFirst()

    def __call__(self, tree: SearchTree) -> Sequence[SearchNode]:
        """The nodes."""
        # The selection of an end counts its value, so it comes before the limit.
        return [] if sum(node.visits > 0 for node in tree.ends()) >= self.max_ends else self.then(tree)
