"""Chains first, then forks within turns, at the tokens that were least expected."""

from dataclasses import dataclass
from typing import ClassVar

from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.piece import write_on
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome
from bough.tree.needs import FORKS, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A token at which another could have been written.

    Attributes:
        draft: The action that it is in.
        at: Its place in the action.
        surprisal: How little it was expected: minus its log-probability, nats.
    """

    draft: PendingAction
    at: int
    surprisal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpTree:
    """EPTree, TreeRL's growth (arXiv 2506.11902): forks at the most surprising tokens; assumes states step twice.

    `chains` chains are played. Then, in each of `rounds` rounds, the `spots` sampled tokens of each chain's tree with
    the largest surprisal -log p are taken, those of earlier forks included, and from just before each of them
    `forks_each` paths are written to the end: `chains * (1 + spots * forks_each * rounds)` in all, 30 by default. The
    first token of a chain or a fork is never taken: to write another there is another branch of the place before.
    Of equals the one written first is taken. A chain of four tokens, then one round of one spot and two forks:

        -log p       0.3  0.1  2.2  0.7
        chain        t1   t2   t3   t4
        forks                  t5   t6
                               t7   t8

    In an environment of many turns the tokens of all of them are candidates, and a fork is played to the end of the
    episode. Where a tree has fewer candidates than spots, chains from the prompt take the place of what is missing.

    Tokens that were surprising are a sample of tokens that might have been others: it says less than the entropy, but
    is free. What fails is written anew from where it failed, up to `retries` times; when a budget of the tree runs
    out, no more forks begin.

    Price: with T tokens to a path and forks at a mean depth of d T, a tree has chains * T * (1 + F (1 - d)) tokens for
    F = spots * forks_each * rounds, independent chains have chains * T * (1 + F): 18 T and 30 T by default where d is a
    half.

    The released code masks what follows a token that contains "answer" or "conclusion", repeats the spots it has where
    there are too few, and trains on 16 of the 30 paths, at random but for a correct one; here all are kept.

    Attributes:
        chains: Chains at the start, M in the paper.
        spots: Tokens of each chain's tree at which it is forked in each round, N.
        rounds: How often, L.
        forks_each: Paths from each of these tokens, T.
        retries: How often what fails is tried again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    chains: int = 6
    spots: int = 2
    rounds: int = 1
    forks_each: int = 2
    retries: int = 2

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("spots", 0), ("rounds", 0), ("forks_each", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"Surprisal.{name}: got {getattr(self, name)}; need at least {least}")

    @property
    def paths(self) -> int:
        """How many paths a tree has when nothing fails and no budget runs out."""
        return self.chains * (1 + self.spots * self.forks_each * self.rounds)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        known: list[list[Spot]] = [[] for _ in range(self.chains)]
        await self._play(rollout, known, [(chain, root) for chain in range(self.chains)], 0)
        for number in range(self.rounds):
            if rollout.spent:
                break
            drawn: list[tuple[int, Cursor | PendingAction]] = []
            for chain, spots in enumerate(known):
                best = sorted(spots, key=lambda spot: -spot.surprisal)[: self.spots]
                places = [*(_before(rollout, spot) for spot in best), *[root] * (self.spots - len(best))]
                drawn += [(chain, place) for place in places for _ in range(self.forks_each)]
            await self._play(rollout, known, drawn, self.chains + number * len(drawn))

    async def _play(
        self, rollout: Rollout, known: list[list[Spot]], drawn: list[tuple[int, Cursor | PendingAction]], first: int
    ) -> None:
        """Play a path from each drawn place, and add its tokens to what is known of its chain's tree."""
        calls = (self._path(rollout, place, number) for number, (_, place) in enumerate(drawn, start=first))
        for (chain, _), path in zip(drawn, await together(rollout, calls), strict=True):
            known[chain] += path

    async def _path(self, rollout: Rollout, place: Cursor | PendingAction, number: int) -> list[Spot]:
        """The tokens of path `number` at which it could fork; none, when it failed for good."""
        spots: list[Spot] = []
        after: Cursor | PendingAction | Outcome = place
        branch = number
        while isinstance(after, Cursor | PendingAction):
            piece = await write_on(rollout, after, branch=branch, retries=self.retries)
            # The first turn of no two paths has one number; later turns are branch 0.
            after, branch = piece.after, 0
            if piece.draft is not None:
                spots += _spots(rollout, piece.draft)
        # The first token of the path is that of its branch.
        return [] if after is Outcome.FAILED else spots[1:]


def _spots(rollout: Rollout, draft: PendingAction) -> list[Spot]:
    """The tokens of the last piece of an action, in order."""
    logprobs = rollout.builder.nodes[draft.node].logprobs
    if logprobs is None:
        raise ValueError(
            "EpTree: got tokens without log-probabilities; need an engine that says them and a temperature above 0"
        )
    first = len(draft.tokens) - len(logprobs)
    return [Spot(draft=draft, at=at, surprisal=-logprob) for at, logprob in enumerate(logprobs, start=first)]


def _before(rollout: Rollout, spot: Spot) -> Cursor | PendingAction:
    return rollout.cut(spot.draft, spot.at) if spot.at else spot.draft.cursor
