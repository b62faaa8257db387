"""Independent chains: every path branches at the prompt and nowhere else."""

from typing import Annotated

from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome


@piece
class Chains:
    """`n` chains of one task, the group sampling of GRPO (arXiv 2402.03300).

    A chain that fails, through a fault of the environment or the engine, is retried from the start up to `retries`
    times; the failed attempts stay in the tree as `FAILED` paths, which count nowhere.

    Attributes:
        n: Number of chains.
        retries: How often a chain that fails by a fault is retried.
    """

    n: Annotated[int, AtLeast(1)] = 8
    retries: Annotated[int, AtLeast(0)] = 2

    @property
    def paths(self) -> int:
        """The number of paths of a tree."""
        return self.n

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        most = [rollout.max_cost(root, attempts=self.retries + 1)] * self.n
        await together(rollout, (self._chain(rollout, root, chain) for chain in range(self.n)), most)

    async def _chain(self, rollout: Rollout, root: Cursor, chain: int) -> None:
        for attempt in range(self.retries + 1):
            if await rollout.roll_out(root, branch=chain + attempt * self.n) is not Outcome.FAILED:
                return
