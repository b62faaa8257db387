"""Forks after observations at which the policy became less sure of what to do."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.rollout.cursor import Cursor
from bough.rollout.piece import Piece, write_on
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree.needs import ENTROPIES, FORKS, Need

FIRST_TOKENS = 20
"""A turn's entropy is that of so many of its tokens."""


@dataclass(slots=True, kw_only=True)
class Path:
    """A path on its way.

    Attributes:
        number: Among the paths of the tree.
        at: Where it stands.
        first: The entropy that a rise is measured against, that of its first turn; None before it was taken.
        streak: How many observations in a row it has been forked after, up to here.
        fresh: Whether it has just come from a fork or the prompt, and its next turn is not forked.
    """

    number: int
    at: Cursor
    first: float | None = None
    streak: int = 0
    fresh: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyForks:
    """ARPO's growth (arXiv 2507.19849), AEPO's too: forks where entropy rose; assumes states step twice.

    `chains` chains begin. All live paths take a turn at a time; with H the mean entropy, in nats, of the first 20
    tokens of a turn, a path that has read an observation and written its next turn is forked at the observation with
    probability

        P = clip((p0 + w * (H - H of the path's first turn)) * (1 - penalty * l), 0, 1)

    while there is room for `paths` in all: one more path goes on from there. l is after how many observations in a row,
    just before, it was forked. A path's first turn is the one from the prompt, also where it is shared: nothing is
    remembered from tree to tree. When no path is left and there is still room, chains from the prompt fill it. With
    p0 = .5 and w = .2:

        H - first    -1     0     .5    1
        P            .3    .5    .6    .7

    ARPO has no penalty. With `balance` the number of chains is AEPO's (arXiv 2510.14545; experimental: the formula is
    from summaries of the paper, the form of the penalty from re-implementations): one chain is played to its end, and
    with H_root the entropy of its first turn and H_tool the mean of that of its others,

        chains = round(paths * sigmoid(balance * (H_root - H_tool)))

    at least 1: at balance 1 and 16 paths, 10 and 6 for gaps of .5 and -.5. The code that there is has balance .5 and
    penalty .05 (which it counts over a whole task, and never takes back), puts all turns into H_tool, and throws that
    chain away.

    Price: with F forks after a share d of their turns, paths of T turns cost (paths - F d) T turns, independent chains
    paths * T. The turn whose entropy decides is that of the path itself, so that looking costs nothing.

    The released code has another entropy, over the engine's top tokens: the sum over the 20 tokens, divided by the log
    of the size of the vocabulary, which grows with the length of a turn (20 coin flips are 1.16); it takes that of the
    turn before the observation; and it measures a fork's rise from the first turn after it (`as_released` is all this,
    entropies themselves being exact). It looks up what a rise is measured against by the number of a row in the batch,
    and never forgets: most of its baselines are those of other prompts. That is not reproduced. It draws u and forks
    where u + w * rise >= p0, which is the same where p0 is a half; the paper forks where p0 + w * rise passes a
    threshold. What fails is written anew from where it failed, up to `retries` times.

    Attributes:
        paths: Paths of a tree.
        chains: Those that begin at the prompt, before any room is left over.
        base: Probability of a fork where the entropy did not change, p0.
        weight: How much a rise of 1 adds, w.
        balance: Sensitivity of the number of chains to entropy; None for `chains`.
        penalty: How much each fork just before takes off.
        as_released: The entropy of ARPO's released code.
        vocab_tokens: Size of the vocabulary, for `as_released`; Qwen2.5's by default.
        retries: How often what fails is tried again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ENTROPIES, FORKS})

    paths: int = 16
    chains: int = 8
    base: float = 0.5
    weight: float = 0.2
    balance: float | None = None
    penalty: float = 0.0
    as_released: bool = False
    vocab_tokens: int = 151936
    retries: int = 2

    def __post_init__(self) -> None:
        if self.paths < 1 or (self.balance is None and not 1 <= self.chains <= self.paths):
            raise ValueError(f"EntropyForks: got chains={self.chains}, paths={self.paths}; need 1 <= chains <= paths")
        if not 0 <= self.base <= 1 or not 0 <= self.penalty <= 1:
            raise ValueError(
                f"EntropyForks: got base={self.base}, penalty={self.penalty}; need numbers from 0 to 1 for both"
            )
        if self.vocab_tokens < 2 or self.retries < 0:
            raise ValueError(
                f"EntropyForks: got vocab_tokens={self.vocab_tokens}, retries={self.retries}; need at least 2 and 0"
            )

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
            for path, piece in zip(live, pieces, strict=True):
                other = self._moved(rollout, path, piece, begun < self.paths, begun)
                if other is not None:
                    forked.append(other)
                    begun += 1
                if isinstance(piece.after, Cursor):
                    going.append(path)
            live = [*going, *(forked if self.as_released else await self._catch_up(rollout, forked))]

    def chance(self, rise: float, streak: int = 0) -> float:
        """The probability of a fork after a rise of the entropy, and so many forks just before."""
        return min(max((self.base + self.weight * rise) * max(1 - self.penalty * streak, 0.0), 0.0), 1.0)

    def entropy(self, entropies: Sequence[float]) -> float:
        """The entropy of a turn from those of its tokens, nats: their mean, or as the released code has it."""
        first = list(entropies[:FIRST_TOKENS])
        return sum(first) / (math.log(self.vocab_tokens) if self.as_released else max(len(first), 1))

    async def _catch_up(self, rollout: Rollout, forked: Sequence[Path]) -> list[Path]:
        """Let forks take the turn that the paths have already taken that they left; those that go on."""
        pieces = await self._round(rollout, forked)
        for path, piece in zip(forked, pieces, strict=True):
            self._moved(rollout, path, piece, False, 0)
        return [path for path, piece in zip(forked, pieces, strict=True) if isinstance(piece.after, Cursor)]

    async def _probe(self, rollout: Rollout, root: Cursor) -> int:
        """Play the first chain; how many chains there are to be."""
        heights: list[float] = []
        path = Path(number=0, at=root)
        after: object = root
        while isinstance(after, Cursor):
            path.at = after
            (piece,) = await self._round(rollout, [path])
            path.fresh, after = False, piece.after
            if piece.draft is not None:
                heights.append(self._height(rollout, piece))
        later = heights[1:]
        gap = heights[0] - sum(later) / len(later) if later else 0.0
        share = 1 / (1 + math.exp(-(self.balance or 0.0) * gap))
        return max(1, min(round(self.paths * share), self.paths))

    async def _round(self, rollout: Rollout, live: Sequence[Path]) -> list[Piece]:
        """A turn for each path."""
        # The first turn of no two paths has one number; later turns are branch 0.
        numbers = [path.number if path.fresh else 0 for path in live]
        calls = (
            write_on(rollout, path.at, branch=number, retries=self.retries)
            for path, number in zip(live, numbers, strict=True)
        )
        return await together(rollout, calls)

    def _moved(self, rollout: Rollout, path: Path, piece: Piece, room: bool, number: int) -> Path | None:
        """Move a path on by the turn that it took; the path that forks from it, when one does."""
        if piece.draft is None:
            return None
        height, before, after = self._height(rollout, piece), path.at, piece.after
        first = path.first if path.first is not None else height
        # With the paper the turn after an observation decides, as released the turn before it.
        place = (after if isinstance(after, Cursor) else None) if self.as_released else None if path.fresh else before
        path.first, path.fresh = first, False
        if isinstance(after, Cursor):
            path.at = after
        if place is None:
            return None
        luck = random.Random(rollout.seed("entropy forks", path.number, len(place.past)))
        if not (room and luck.random() < self.chance(height - first, path.streak)):
            path.streak = 0
            return None
        path.streak += 1
        return Path(number=number, at=place, first=None if self.as_released else first, streak=path.streak)

    def _height(self, rollout: Rollout, piece: Piece) -> float:
        assert piece.draft is not None
        entropies = rollout.builder.nodes[piece.draft.node].entropies
        if entropies is None:
            raise ValueError(
                "EntropyForks: got a turn without entropies; need an engine that says them, sampling.entropies=true "
                "and a temperature above 0"
            )
        return self.entropy(entropies)
