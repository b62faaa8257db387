"""A score that mixes an action's rating with its value."""

import math
from typing import Annotated

from bough.piece import Above, AtLeast, Between, piece
from bough.search.node import SearchNode
from bough.search.score import known, rating_of


@piece
class Hybrid:
    """I-MCTS's score (arXiv 2502.14693): UCT with the rating as a prior that fades with visits.

        h + c * sqrt(ln N / n)          h = w * rating + (1 - w) * q, w = v / (n + v), or `share`

    n counts the visits, v = `rating_visits` before the first; N those of the parent, 1 at least (the released code adds
    1e-6 to it and is nan at the root). With .2 rating visits and c 2, N = 3: two visits of mean .6 and a rating of .9
    score 2.1096, no visit and a rating of .7 scores 5.3875.

    With `share` the rating keeps its weight: Agent Q (2408.07199) mixes the critic's rating and q so.

    Attributes:
        c: Weight of the bonus, >= 0.
        rating_visits: Number of visits that the rating counts as, > 0.
        share: Weight of the rating, from 0 to 1, whatever the number of visits; None to let it fade.
    """

    c: Annotated[float, AtLeast(0)] = 2.0
    rating_visits: Annotated[float, Above(0)] = 0.2
    share: Annotated[float | None, Between(0, 1)] = None

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        above = 0 if node.parent is None else node.parent.visits
        bonus = self.c * math.sqrt(math.log(max(1, above)) / (node.visits or self.rating_visits))
        fading = self.rating_visits / (node.visits + self.rating_visits)
        weight = fading if self.share is None or not node.visits else self.share
        return weight * rating_of(node) + (1 - weight) * known(node.q) + bonus
