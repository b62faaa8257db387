"""Going down a tree, child by child, to a place that nobody has looked at."""

from dataclasses import dataclass

from bough.explore.search import Score
from bough.explore.search.node import SearchNode
from bough.explore.search.score import Uct
from bough.explore.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Descend:
    """The tree policy of Monte-Carlo tree search: from the root, always to the best child, down to one not expanded.

    With `revisit` the search may come to the end of a path again, and count it once more, so that visits gather where
    it is good, as the convergence of UCT needs; a tree of which everything is known ends the search all the same.
    Without, nodes below which nothing is open are passed over (rStar-Math, arXiv 2501.04519; CPL, 2409.08642).

    Attributes:
        by: Which child is best.
        revisit: Whether known ends count again.
    """

    by: Score = Uct()
    revisit: bool = True

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The place."""
        node = tree.root
        while node.expanded:
            children = [child for child in node.children if not (child.pruned if self.revisit else child.closed)]
            if not children:
                return []
            node = max(children, key=lambda child: (self.by(child), -child.number))
        return [node]
