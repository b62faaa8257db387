"""Chains, then forks at turns drawn at random, each sampled to the end."""

import random
from collections.abc import Sequence
from typing import Annotated, ClassVar

from bough.explore.chain_trees import grow_chain_trees
from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.tree import Outcome


@piece
class Forks:
    """Tree-GRPO's growth (arXiv 2509.21240): chains, then forks at turns drawn uniformly, each sampled to the end.

    `chains` chains are sampled. Then, in each of `rounds` rounds, every chain draws `draws` states, with replacement,
    from the prompt and all states of its own tree before a turn, earlier forks included. A path is sampled from each to
    the end. That makes `chains * (1 + draws * rounds)` paths, 8 by default. A fork at the prompt shares no turn, but
    counts with the chain that drew it: the column `chain` at every path's first action has the index of that chain.

    A draw is uniform over the states of a chain, so a chain is forked when it has ended, and a tree has up to twice the
    forward passes in a row of as many chains. A chain's forks do not wait for other chains.

    The draws depend only on the seed and the tree. When a budget of the tree runs out, no more forks start. A path that
    fails is retried from its fork up to `retries` times; failed attempts stay in the tree as `FAILED` paths, which
    count nowhere and are not forked. The environment must support stepping a state twice.

    The paper then keeps a random subset of the paths of a tree, so that all groups have one size; here all are kept.

    Attributes:
        chains: Initial chains, M in the paper.
        draws: Forks of each chain in each round, N.
        rounds: Number of rounds, L.
        retries: How often a path that fails is retried.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    chains: Annotated[int, AtLeast(1)] = 2
    draws: Annotated[int, AtLeast(0)] = 3
    rounds: Annotated[int, AtLeast(0)] = 1
    retries: Annotated[int, AtLeast(0)] = 2

    @property
    def paths(self) -> int:
        """Number of paths of a tree without failures and within the budgets."""
        return self.chains * (1 + self.draws * self.rounds)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()

        def draw(chain: int, number: int, passed: Sequence[Cursor]) -> list[Cursor]:
            rng = random.Random(rollout.seed("forks", number, chain))
            return rng.choices([root, *passed], k=self.draws)

        async def path(at: Cursor | PendingAction, number: int) -> list[Cursor]:
            assert isinstance(at, Cursor)
            return await self._path(rollout, at, number)

        await grow_chain_trees(
            rollout,
            root,
            chains=self.chains,
            forks=self.draws,
            rounds=self.rounds,
            attempts=self.retries + 1,
            positions=draw,
            path=path,
        )
        for node in rollout.builder.nodes:
            if node.parent == root.node:
                node.chain = self._trunk(node.branch)

    async def _path(self, rollout: Rollout, cursor: Cursor, number: int) -> list[Cursor]:
        """The states of path `number` before its end; none when all attempts failed."""
        for attempt in range(self.retries + 1):
            # First turns have distinct branch numbers; later turns are branch 0.
            here = await rollout.advance(cursor, branch=number + attempt * self.paths)
            passed: list[Cursor] = []
            while isinstance(here, Cursor):
                passed.append(here)
                here = await rollout.advance(here)
            if here is not Outcome.FAILED:
                return passed
        return []

    def _trunk(self, branch: int) -> int:
        """The chain of a path, by the branch of its first turn."""
        number = branch % self.paths
        return number if number < self.chains else (number - self.chains) % (self.chains * self.draws) // self.draws
