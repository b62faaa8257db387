"""Paths sampled in segments of a fixed length, each of which may branch."""

import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Annotated, ClassVar, TypeAlias

from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.piece import Piece, write_on
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy

Trail: TypeAlias = tuple[Cursor | PendingAction, ...]
"""The starts of a path's segments, the prompt first."""


@piece
class Segments:
    """TreePO's growth (arXiv 2508.17445): segments of a fixed length that branch; assumes states step twice.

    All live paths sample a segment of at most `tokens` tokens at a time, each an `ACTION` node of its own; a segment
    also ends with its turn, and the path continues with the next. Then they branch, with W = `width`:

        branches = min(W - ended, divergence * (live + ended in this round))

    shared out evenly, the first paths get the remainder: the branches of an ended path are transferred to the live
    ones. When no path is live and fewer than W have ended, ended paths restart at a segment start drawn uniformly, the
    prompt included, with `divergence` branches each. Truncated paths come first. With W = 4, divergence 2, and one path
    that ends in the second round:

        round      live   ended   branches
        1          2      0       min(4, 4) = 4
        2          3      1       min(3, 8) = 3
        3          0      4

    A path ends as `TRUNCATED` when some `loop_tokens` tokens in a row are in its action `loop_times` times. A segment
    that fails is sampled again up to `retries` times. The draws depend only on the seed and the tree.

    Cost: a tree whose paths all have L segments and end together has sum over k = 1..L of min(W, divergence^k)
    segments, independent chains have W L: 190 and 224 for W = 16, L = 14.

    The released code gives the remainder to the last path and searches for repetitions in text (32 characters, 8
    times). It can weight branches by log-probability and cut where a token was unlikely (which gives segments of other
    lengths, which its credit ignores). It has a separate first divergence, which its script sets and no code uses.

    Attributes:
        width: Paths of a tree, W.
        divergence: Branches of a segment while the tree is below its width.
        tokens: Tokens of a segment.
        loop_tokens: Length of a repetition, in tokens.
        loop_times: Number of its occurrences that ends a path.
        retries: How often a segment that fails is sampled again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    width: Annotated[int, AtLeast(1)] = 16
    divergence: Annotated[int, AtLeast(1)] = 2
    tokens: Annotated[int, AtLeast(1)] = 512
    loop_tokens: Annotated[int, AtLeast(1)] = 8
    loop_times: Annotated[int, AtLeast(2)] = 8
    retries: Annotated[int, AtLeast(0)] = 2

    @property
    def paths(self) -> int:
        """Number of paths of a tree without failures and within the budgets."""
        return self.width

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        live: list[Trail] = [(await rollout.root(),)]
        over: list[tuple[Outcome, Trail]] = []
        branches: Counter[int] = Counter()
        used, just = 0, 0
        while live or used < self.width:
            starts = self._spread(live, just, self.width - used) if live else self._again(rollout, over, used)
            if not starts:
                break
            pieces = await self._round(rollout, starts, branches)
            live, just = [], 0
            for trail, each in zip(starts, pieces, strict=True):
                after = self._unless_looping(rollout, each)
                if not isinstance(after, Outcome):
                    live.append((*trail, after))
                    continue
                just += 1
                # A path that failed or never started is not restarted.
                if after is not Outcome.FAILED and each.draft is not None:
                    over.append((after, trail))
            used += just

    async def _round(self, rollout: Rollout, starts: Sequence[Trail], branches: Counter[int]) -> list[Piece]:
        """A segment of each trail; `branches` counts those of every node."""
        calls: list[Coroutine[None, None, Piece]] = []
        for trail in starts:
            at = trail[-1]
            calls.append(write_on(rollout, at, branch=branches[at.node], retries=self.retries, most=self.tokens))
            branches[at.node] += 1
        most = [rollout.max_cost(trail[-1], turns=1, attempts=self.retries + 1) for trail in starts]
        return await together(rollout, calls, most)

    def _spread(self, live: Sequence[Trail], just: int, capacity: int) -> list[Trail]:
        """The trails that continue, each repeated by its number of branches, up to the capacity."""
        total = min(capacity, self.divergence * (len(live) + just))
        each, left = divmod(total, len(live))
        return [trail for index, trail in enumerate(live) for _ in range(each + (index < left))]

    def _again(self, rollout: Rollout, over: Sequence[tuple[Outcome, Trail]], used: int) -> list[Trail]:
        """Starts of ended paths, from which they are sampled again."""
        rng = random.Random(rollout.seed("segments", used))
        starts: list[Trail] = []
        for _, trail in sorted(over, key=lambda each: each[0] is Outcome.TERMINATED):
            starts += [trail[: rng.randint(1, len(trail))]] * self.divergence
        return starts[: self.width - used]

    def _unless_looping(self, rollout: Rollout, piece: Piece) -> Cursor | PendingAction | Outcome:
        """Where a path continues; `TRUNCATED` when it repeats itself."""
        after = piece.after
        if not isinstance(after, PendingAction):
            return after
        grams = Counter(zip(*(after.tokens[shift:] for shift in range(self.loop_tokens)), strict=False))
        if max(grams.values(), default=0) < self.loop_times:
            return after
        rollout.stop(after, TruncatedBy.REPETITION)
        return Outcome.TRUNCATED
