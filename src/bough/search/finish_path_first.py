"""Selection that finishes a path before the next one starts."""

from dataclasses import dataclass

from bough.search.descend import Descend
from bough.search.node import SearchNode
from bough.search.pieces import Select
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishPathFirst:
    """Selects the newest node while it is open, and otherwise calls another selector.

    So a search follows every path to its end, each turn of it a round and a node that can be selected later.
    `RolloutValue` follows a path within one round, without nodes. With `Search(evaluate=ConstantValue(value=None))`
    only the ends count.

    Attributes:
        then: Selects where a new path starts.
    """

    then: Select = Descend()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        last = tree.nodes[-1]
        begun = last is not tree.root and last.live and not last.children
        return [last] if begun else list(self.then(tree))
