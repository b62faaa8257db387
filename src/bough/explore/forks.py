"""Chains first, then forks at turns drawn at random, each continued to the end."""

import random
from dataclasses import dataclass
from typing import ClassVar

from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import TRUNK, Outcome
from bough.tree.needs import FORKS, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Forks:
    """Tree-GRPO's growth (arXiv 2509.21240): chains, then forks at turns drawn uniformly, each played to the end.

    `chains` chains are played. Then, in each of `rounds` rounds, every chain draws `draws` places, with replacement,
    from the prompt and all places of its own tree at which a turn is still to be taken, those of earlier forks
    included; a path is sampled from each to the end. That makes `chains * (1 + draws * rounds)` paths, 8 by default.
    Drawing the prompt makes a chain that shares nothing but counts with the chain that drew it: the first action of
    every path says in its info, as "trunk", which chain that was.

    What is drawn depends on the seed and on the tree alone. When a budget of the whole tree runs out, no more forks
    begin. A path that fails is played anew from where it forked, up to `retries` times; failed attempts stay in the
    tree as `FAILED` paths, which count nowhere and from which nothing forks. The environment must be able to step a
    state twice.

    The paper then keeps some of the paths of a tree at random, so that all groups are of one size; here all are kept.

    Attributes:
        chains: Chains at the start, M in the paper.
        draws: Forks of each chain in each round, N.
        rounds: How often forks are drawn, L.
        retries: How often a path that fails is tried again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    chains: int = 2
    draws: int = 3
    rounds: int = 1
    retries: int = 2

    def __post_init__(self) -> None:
        if self.chains < 1 or self.draws < 0 or self.rounds < 0 or self.retries < 0:
            raise ValueError(
                f"Forks: got chains={self.chains}, draws={self.draws}, rounds={self.rounds}, retries={self.retries}; "
                "need chains >= 1 and the others >= 0"
            )

    @property
    def paths(self) -> int:
        """How many paths a tree has when nothing fails and no budget runs out."""
        return self.chains * (1 + self.draws * self.rounds)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        # By chain: where a path of its tree can fork.
        places = [[root] for _ in range(self.chains)]
        await self._play(rollout, places, [(chain, root) for chain in range(self.chains)], 0)
        for number in range(self.rounds):
            if rollout.spent:
                break
            drawn: list[tuple[int, Cursor]] = []
            for chain, candidates in enumerate(places):
                luck = random.Random(rollout.seed("forks", number, chain))
                drawn += [(chain, place) for place in luck.choices(candidates, k=self.draws)]
            await self._play(rollout, places, drawn, self.chains + number * len(drawn))
        for node in rollout.builder.nodes:
            if node.parent == root.node:
                node.info[TRUNK] = self._trunk(node.branch)

    async def _play(
        self, rollout: Rollout, places: list[list[Cursor]], drawn: list[tuple[int, Cursor]], first: int
    ) -> None:
        """Play a path from each drawn place, and add where it came by to the places of its chain."""
        calls = (self._path(rollout, place, number) for number, (_, place) in enumerate(drawn, start=first))
        for (chain, _), path in zip(drawn, await together(rollout, calls), strict=True):
            places[chain] += path

    async def _path(self, rollout: Rollout, place: Cursor, number: int) -> list[Cursor]:
        """Where path `number` came by on its way to the end; nowhere, when all attempts failed."""
        for attempt in range(self.retries + 1):
            # The first turn of no two paths has one number; later turns are branch 0.
            here = await rollout.advance(place, branch=number + attempt * self.paths)
            passed: list[Cursor] = []
            while isinstance(here, Cursor):
                passed.append(here)
                here = await rollout.advance(here)
            if here is not Outcome.FAILED:
                return passed
        return []

    def _trunk(self, branch: int) -> int:
        """The chain that a path was grown from, by the branch that its first turn took."""
        number = branch % self.paths
        return number if number < self.chains else (number - self.chains) % (self.chains * self.draws) // self.draws
