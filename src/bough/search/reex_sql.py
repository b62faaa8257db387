"""ReEx-SQL's decoding: paths fork after executions, and vote by the results of their queries."""

from collections.abc import Sequence
from typing import Annotated

from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.search.expand import Sample
from bough.search.node import SearchNode
from bough.search.pieces import Proposal
from bough.search.tree import SearchTree


@piece
class ForkAfterValid:
    """Several samples after a valid action, one after an invalid one: a fork where the environment's answer is news.

    In `Sql` an action is valid when its query has a result; after an error the path goes on alone.

    Attributes:
        start: Number of samples at the prompt.
        width: Number of samples after a valid action.
        forks: Maximum number of forks on a path, without the one at the prompt.
    """

    start: Annotated[int, AtLeast(1)] = 2
    width: Annotated[int, AtLeast(1)] = 2
    forks: Annotated[int, AtLeast(0)] = 2

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Sample actions at a node."""
        return await Sample(width=self._width(tree, node))(tree, node, times)

    def _width(self, tree: SearchTree, node: SearchNode) -> int:
        if node.parent is None:
            return self.start
        before = sum(_valid(tree, each) for each in node.path()[:-1])
        return self.width if _valid(tree, node) and before < self.forks else 1


def _valid(tree: SearchTree, node: SearchNode) -> bool:
    """Whether a node is the state after a valid action."""
    if node.draft is None or not isinstance(node.at, Cursor):
        return False
    return tree.rollout.builder.nodes[node.draft.node].valid is True
