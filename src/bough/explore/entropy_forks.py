"""Forks after observations at which the policy's entropy rose."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bough.needs import ENTROPIES, FORKS, Need
from bough.piece import AtLeast, Between, piece
from bough.rollout.cursor import Cursor
from bough.rollout.piece import Piece, write_on
from bough.rollout.rollout import Rollout
from bough.rollout.together import together

FIRST_TOKENS = 20
"""The entropy of a turn is computed from its first 20 tokens."""


@dataclass(slots=True, kw_only=True)
class Path:
    """A live path.

    Attributes:
        number: Index among the paths of the tree.
        at: Its cursor.
        first: Baseline of the entropy rise: the entropy of its first turn; None before that turn.
        streak: Number of consecutive observations, up to here, after which it was forked.
        fresh: Whether it has just left a fork or the prompt, so that its next turn is not forked.
    """

    number: int
    at: Cursor
    first: float | None = None
    streak: int = 0
    fresh: bool = True


@piece
class EntropyForks:
    """ARPO's growth (arXiv 2507.19849), AEPO's too: forks where entropy rose; assumes states step twice.

    `chains` chains start. All live paths take a turn at a time. Let H be the mean entropy, in nats, of the first 20
    tokens of a turn. After an observation and the path's next turn, the path is forked at the observation with
    probability

        P = clip((p0 + w * (H - H of the path's first turn)) * (1 - penalty * l), 0, 1)

    while the tree has fewer than `paths` paths: one more path starts there. l is the number of consecutive
    observations, just before, after which it was forked. A path's first turn is the one from the prompt, also where it
    is shared; nothing is carried over from tree to tree. When no path is live and the tree has fewer than `paths`,
    chains from the prompt fill it. With p0 = .5 and w = .2:

        H - first    -1     0     .5    1
        P            .3    .5    .6    .7

    ARPO has no penalty. With `balance` the number of chains is AEPO's (arXiv 2510.14545; experimental: the formula is
    from summaries of the paper, the form of the penalty from re-implementations). One chain is sampled to its end. With
    H_root the entropy of its first turn and H_tool the mean over its other turns,

        chains = round(paths * sigmoid(balance * (H_root - H_tool)))

    at least 1: at balance 1 and 16 paths, 10 and 6 for gaps of .5 and -.5. The available code has balance .5 and
    penalty .05 (counted over a whole task, and never reset), puts all turns into H_tool, and discards that chain.

    Cost: with F forks after a share d of their turns, paths of T turns cost (paths - F d) T turns, independent chains
    paths * T. The turn whose entropy decides is that of the path itself, so the entropy costs nothing.

    The released code has another entropy, over the engine's top tokens: the sum over the 20 tokens, divided by the log
    of the vocabulary size, which grows with the length of a turn (20 coin flips are 1.16). It uses the entropy of the
    turn before the observation, and measures a fork's rise from the first turn after it (`as_released` is all this,
    with exact entropies). It looks up the baseline by the row index in the batch and never clears it, so most baselines
    are those of other prompts. That is not reproduced. It draws u and forks where u + w * rise >= p0, which is the same
    where p0 is a half; the paper forks where p0 + w * rise exceeds a threshold. A failed turn is sampled again up to
    `retries` times.

    Attributes:
        paths: Paths of a tree.
        chains: Initial chains from the prompt.
        base: Probability of a fork without a change of the entropy, p0.
        weight: Increase of the probability per unit of rise, w.
        balance: Sensitivity of the number of chains to entropy; None for `chains`.
        penalty: Decrease of the probability per consecutive fork.
        as_released: The entropy of ARPO's released code.
        vocab_tokens: Size of the vocabulary, for `as_released`; Qwen2.5's by default.
        retries: How often a failed turn is sampled again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ENTROPIES, FORKS})

    paths: Annotated[int, AtLeast(1)] = 16
    chains: int = 8
    base: Annotated[float, Between(0, 1)] = 0.5
    weight: float = 0.2
    balance: float | None = None
    penalty: Annotated[float, Between(0, 1)] = 0.0
    as_released: bool = False
    vocab_tokens: Annotated[int, AtLeast(2)] = 151936
    retries: Annotated[int, AtLeast(0)] = 2

    def __post_init__(self) -> None:
        if self.balance is None and not 1 <= self.chains <= self.paths:
            raise ValueError(f"EntropyForks: got chains={self.chains}, paths={self.paths}; need 1 <= chains <= paths")

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        chains = self.chains if self.balance is None else await self._probe(rollout, root)
        begun = 0 if self.balance is None else 1
        live = [Path(number=number, at=root) for number in range(begun, chains)]
        begun = chains
        while live or begun < self.paths:
            if not live:
                if rollout.spent:
                    break
                live = [Path(number=number, at=root) for number in range(begun, self.paths)]
                begun = self.paths
            pieces = await self._round(rollout, live)
            going: list[Path] = []
            forked: list[Path] = []
            for path, turn in zip(live, pieces, strict=True):
                other = self._advance(rollout, path, turn, begun < self.paths, begun)
                if other is not None:
                    forked.append(other)
                    begun += 1
                if isinstance(turn.after, Cursor):
                    going.append(path)
            live = [*going, *(forked if self.as_released else await self._catch_up(rollout, forked))]

    def chance(self, rise: float, streak: int = 0) -> float:
        """The probability of a fork after a rise of the entropy and `streak` consecutive forks."""
        return min(max((self.base + self.weight * rise) * max(1 - self.penalty * streak, 0.0), 0.0), 1.0)

    def entropy(self, entropies: Sequence[float]) -> float:
        """The entropy of a turn from those of its tokens [tokens], nats: their mean, or the released code's formula."""
        first = list(entropies[:FIRST_TOKENS])
        return sum(first) / (math.log(self.vocab_tokens) if self.as_released else max(len(first), 1))

    async def _catch_up(self, rollout: Rollout, forked: Sequence[Path]) -> list[Path]:
        """Sample the turn of new forks that the other paths have already taken; returns the forks that continue."""
        pieces = await self._round(rollout, forked)
        for path, turn in zip(forked, pieces, strict=True):
            self._advance(rollout, path, turn, False, 0)
        return [path for path, turn in zip(forked, pieces, strict=True) if isinstance(turn.after, Cursor)]

    async def _probe(self, rollout: Rollout, root: Cursor) -> int:
        """Sample the first chain; returns the number of chains."""
        turn_entropies: list[float] = []
        path = Path(number=0, at=root)
        after: object = root
        while isinstance(after, Cursor):
            path.at = after
            (piece,) = await self._round(rollout, [path])
            path.fresh, after = False, piece.after
            if piece.draft is not None:
                turn_entropies.append(self._entropy(rollout, piece))
        later = turn_entropies[1:]
        gap = turn_entropies[0] - sum(later) / len(later) if later else 0.0
        share = 1 / (1 + math.exp(-(self.balance or 0.0) * gap))
        return max(1, min(round(self.paths * share), self.paths))

    async def _round(self, rollout: Rollout, live: Sequence[Path]) -> list[Piece]:
        """One turn of each path."""
        # First turns have distinct branch numbers; later turns are branch 0.
        numbers = [path.number if path.fresh else 0 for path in live]
        calls = (
            write_on(rollout, path.at, branch=number, retries=self.retries)
            for path, number in zip(live, numbers, strict=True)
        )
        most = [rollout.max_cost(path.at, turns=1, attempts=self.retries + 1) for path in live]
        return await together(rollout, calls, most)

    def _advance(self, rollout: Rollout, path: Path, piece: Piece, may_fork: bool, number: int) -> Path | None:
        """Advance a path by its new turn; returns the path that forks from it, if any."""
        if piece.draft is None:
            return None
        entropy, before, after = self._entropy(rollout, piece), path.at, piece.after
        first = path.first if path.first is not None else entropy
        # In the paper the turn after an observation decides, in the released code the turn before it.
        cursor = (after if isinstance(after, Cursor) else None) if self.as_released else None if path.fresh else before
        path.first, path.fresh = first, False
        if isinstance(after, Cursor):
            path.at = after
        if cursor is None:
            return None
        rng = random.Random(rollout.seed("entropy forks", path.number, len(cursor.past)))
        if not (may_fork and rng.random() < self.chance(entropy - first, path.streak)):
            path.streak = 0
            return None
        path.streak += 1
        return Path(number=number, at=cursor, first=None if self.as_released else first, streak=path.streak)

    def _entropy(self, rollout: Rollout, piece: Piece) -> float:
        assert piece.draft is not None
        entropies = rollout.builder.nodes[piece.draft.node].entropies
        if entropies is None:
            raise ValueError(
                "EntropyForks: got a turn without entropies; need an engine that returns them, sampling.entropies=true "
                "and a temperature above 0"
            )
        return self.entropy(entropies)
