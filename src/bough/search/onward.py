"""To the end of a path before another one is begun."""

from dataclasses import dataclass

from bough.search import Select
from bough.search.descend import Descend
from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishPathFirst:
    """Goes on from what was found last, as long as that is open, and only then selects as another selector says.

    So a search plays every path to its end, each turn of it a round and a node that can be selected later.
    `RolloutValue` play on within one round, and what comes by on the way is no node. Take
    `Search(evaluate=ConstantValue(value=None))` for ends alone to count.

    Attributes:
        then: Where a new path begins.
    """

    then: Select = Descend()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        last = tree.nodes[-1]
        begun = last is not tree.root and last.live and not last.children
        return [last] if begun else list(self.then(tree))
