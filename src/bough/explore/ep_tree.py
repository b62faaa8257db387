"""Chains, then forks within turns at the tokens of the largest surprisal."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

from bough.explore.chain_trees import grow_chain_trees
from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.piece import write_on
from bough.rollout.rollout import Rollout
from bough.tree import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A candidate token for a fork.

    Attributes:
        draft: The action with the token.
        at: Its index in the action.
        surprisal: Minus its log-probability, nats.
    """

    draft: PendingAction
    at: int
    surprisal: float


@piece
class EpTree:
    """EPTree, TreeRL's growth (arXiv 2506.11902): forks at the most surprising tokens; assumes states step twice.

    `chains` chains are sampled. Each of `rounds` rounds selects, in each chain's tree with its earlier forks, the
    `spots` sampled tokens of the largest surprisal -log p. From just before each of them `forks_each` paths are sampled
    to the end: `chains * (1 + spots * forks_each * rounds)` in all, 30 by default. The first token of a chain or a fork
    is never selected: another token there is another branch of the state before. Ties go to the token sampled first. A
    chain of four tokens, then one round of one spot and two forks:

        -log p       0.3  0.1  2.2  0.7
        chain        t1   t2   t3   t4
        forks                  t5   t6
                               t7   t8

    In an environment of many turns the tokens of all turns are candidates, and a fork is sampled to the end of the
    episode. Where a tree has fewer candidates than spots, chains from the prompt replace the missing ones.

    The largest surprisal is known when a chain has ended, so a tree has up to twice the forward passes in a row of as
    many chains. A chain's forks do not wait for other chains.

    The surprisal of a sampled token is a one-sample estimate of the entropy: it is noisier, but free. A failed piece is
    sampled again up to `retries` times; when a budget of the tree runs out, no more forks start.

    Cost: with T tokens to a path and forks at a mean depth of d T, a tree has chains * T * (1 + F (1 - d)) tokens for F
    = spots * forks_each * rounds, independent chains have chains * T * (1 + F): 18 T and 30 T by default where d is a
    half.

    The released code masks the tokens after one that contains "answer" or "conclusion", repeats spots where there are
    too few, and trains on 16 of the 30 paths, drawn at random apart from one correct path; here all are kept.

    Attributes:
        chains: Initial chains, M in the paper.
        spots: Tokens of each chain's tree at which it is forked in each round, N.
        rounds: Number of rounds, L.
        forks_each: Paths from each of these tokens, T.
        retries: How often a failed piece is sampled again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    chains: Annotated[int, AtLeast(1)] = 6
    spots: Annotated[int, AtLeast(0)] = 2
    rounds: Annotated[int, AtLeast(0)] = 1
    forks_each: Annotated[int, AtLeast(1)] = 2
    retries: Annotated[int, AtLeast(0)] = 2

    @property
    def paths(self) -> int:
        """Number of paths of a tree without failures and within the budgets."""
        return self.chains * (1 + self.spots * self.forks_each * self.rounds)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()

        def select(chain: int, number: int, spots: Sequence[Spot]) -> list[Cursor | PendingAction]:
            del chain, number
            best = sorted(spots, key=lambda spot: -spot.surprisal)[: self.spots]
            positions = [*(_before(rollout, spot) for spot in best), *[root] * (self.spots - len(best))]
            return [position for position in positions for _ in range(self.forks_each)]

        await grow_chain_trees(
            rollout,
            root,
            chains=self.chains,
            forks=self.spots * self.forks_each,
            rounds=self.rounds,
            attempts=self.retries + 1,
            positions=select,
            path=partial(self._path, rollout),
        )

    async def _path(self, rollout: Rollout, position: Cursor | PendingAction, number: int) -> list[Spot]:
        """The candidate tokens of path `number`; none when all attempts failed."""
        spots: list[Spot] = []
        after: Cursor | PendingAction | Outcome = position
        branch = number
        while isinstance(after, Cursor | PendingAction):
            piece = await write_on(rollout, after, branch=branch, retries=self.retries)
            # First turns have distinct branch numbers; later turns are branch 0.
            after, branch = piece.after, 0
            if piece.draft is not None:
                spots += _spots(rollout, piece.draft)
        # The first token of a path is not a candidate.
        return [] if after is Outcome.FAILED else spots[1:]


def _spots(rollout: Rollout, draft: PendingAction) -> list[Spot]:
    """The tokens of the last piece of an action, in order."""
    logprobs = rollout.builder.nodes[draft.node].logprobs
    if logprobs is None:
        raise ValueError(
            "EpTree: got tokens without log-probabilities; need an engine that returns them and a temperature above 0"
        )
    first = len(draft.tokens) - len(logprobs)
    return [Spot(draft=draft, at=at, surprisal=-logprob) for at, logprob in enumerate(logprobs, start=first)]


def _before(rollout: Rollout, spot: Spot) -> Cursor | PendingAction:
    return rollout.cut(spot.draft, spot.at) if spot.at else spot.draft.cursor
