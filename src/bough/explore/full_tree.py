"""Full trees: every state is forked, level by level down to some depth, and each path is then sampled to its end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated, ClassVar

from bough.engine import Sampling
from bough.explore.quality import FormatScore, Quality, rate
from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.budget import BudgetExceeded, Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy
from bough.varying import constant


@piece
class FullTree:
    """Experimental: TreeRPO's full tree (arXiv 2506.05183): `width` branches per state, `depth` levels; needs forks.

    At each level `width` actions are sampled in every live state, and executed; after `depth` levels each live state is
    continued to the end by one path. Two branches at two levels, of episodes of four turns:

        level 1   2 actions      level 2   4      then   4 and 4      14 in all, where 4 chains would be 16

    The branches of a state are a group of `TreeRpo`. Without failures and early ends, episodes of T turns have width +
    width^2 + ... + width^depth + width^depth * (T - depth) actions. TreeRPO forks after a number of tokens, here after
    turns; defaults of 8 and 3, from a summary, make 512 paths.

    With `keep`, only the best actions of a level are executed, as in DialTree-RPO (arXiv 2510.02286): dialogues branch
    at every turn, and malformed or surplus actions are pruned. In ties, the first branch of every state comes before
    the second of any. With `min_quality`, actions of a lower quality are dropped, too, unless a level has no other. An
    action whose quality is unknown ranks at the mean of the level, and is not dropped for its quality.
    With `merge`, an action that was sampled before in the same state is not executed again, as TreePS-RAG (arXiv
    2601.06922) keeps its siblings diverse; its rule is not known. Actions that are not executed stay in the tree as
    samples, but are not on any path: they count in no group, no mean and no loss. So with `merge` a group compares
    different actions, whatever their probabilities.

    With `heat`, deeper levels are sampled at higher temperatures, and with `trunk` the levels are a window that begins
    after some turns (Dynamic-TreeRPO, arXiv 2509.23352, a paper on images, where a level is a step of denoising and the
    noise of a flow grows with the level). Level k of `depth`, 0 the first, has the agent's temperature times

        1 + heat * k / depth

    so that branches of a late fork, which share most of their path, differ. heat .5 and three levels: 1, 1.1667,
    1.3333. Log-probabilities are those of the sampled distribution, so the loss corrects by its ratio. The window
    begins after 0 to `trunk` turns without a fork, drawn for each tree; the paper's moves with the training step.

    A path that fails is retried from its last fork, up to `retries` times. When a budget of the tree runs out, every
    live state becomes the end of a path.

    Attributes:
        width: Branches of a state, N in the paper.
        depth: Number of levels with forks, D.
        keep: Maximum number of executed actions per level; None for all.
        min_quality: Lowest quality of an executed action; None for any.
        quality: Scores the actions for `keep` and `min_quality`; not called without them.
        merge: Whether equal actions of a state are executed once.
        heat: Growth of the temperature with the level, >= 0.
        trunk: Maximum number of turns before the first fork.
        retries: How often a branch that fails is retried.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    width: Annotated[int, AtLeast(1)] = 8
    depth: Annotated[int, AtLeast(0)] = 3
    keep: Annotated[int | None, AtLeast(1)] = None
    min_quality: float | None = None
    quality: Quality = FormatScore()
    merge: bool = False
    heat: Annotated[float, AtLeast(0)] = 0.0
    trunk: Annotated[int, AtLeast(0)] = 0
    retries: Annotated[int, AtLeast(0)] = 2

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        live = await self._grow_trunk(rollout)
        for level in range(self.depth):
            sampling = self._sampling(rollout, level)
            calls = [
                self._write(rollout, cursor, branch, 0, sampling) for cursor in live for branch in range(self.width)
            ]
            most = [rollout.max_cost(cursor, turns=1, attempts=self.retries + 1) for cursor in live]
            # An action is only sampled.
            each_most = [replace(each, turns=0) for each in most for _ in range(self.width)]
            written = await together(rollout, calls, each_most)
            groups = [written[at : at + self.width] for at in range(0, len(written), self.width)]
            chosen = await self._choose(rollout, groups)
            most = [rollout.max_cost(each.draft, turns=1, attempts=self.retries + 1) for each in chosen]
            after = await together(rollout, [self._do(rollout, each) for each in chosen], most)
            live = [cursor for cursor in after if isinstance(cursor, Cursor)]
        most = [rollout.max_cost(cursor, attempts=self.retries + 1) for cursor in live]
        await together(rollout, [self._continue(rollout, cursor) for cursor in live], most)

    async def _grow_trunk(self, rollout: Rollout) -> list[Cursor]:
        """The state at which the window begins; none where the path has ended before."""
        here = await rollout.root()
        for _ in range(Random(rollout.seed("trunk")).randint(0, self.trunk)):
            after = await self._advance(rollout, here)
            if not isinstance(after, Cursor):
                return []
            here = after
        return [here]

    async def _advance(self, rollout: Rollout, cursor: Cursor) -> Cursor | Outcome:
        """The result of a turn; a turn that fails is sampled again."""
        after = await rollout.advance(cursor)
        for attempt in range(1, self.retries + 1):
            if after is Outcome.FAILED:
                after = await rollout.advance(cursor, branch=attempt)
        return after

    def _sampling(self, rollout: Rollout, level: int) -> Sampling | None:
        """The sampling settings of a level; None for the agent's."""
        own = rollout.sampling
        if not self.heat:
            return None
        return replace(own, temperature=constant(own.temperature) * (1 + self.heat * level / self.depth))

    async def _write(
        self, rollout: Rollout, cursor: Cursor, branch: int, attempt: int, sampling: Sampling | None
    ) -> "_Branch | None":
        """An action; None when all attempts from this one on failed, or when it does not fit a budget."""
        try:
            while attempt <= self.retries:
                if not await rollout.budget.fits(Usage(turns=1)):
                    raise BudgetExceeded(TruncatedBy.TREE_TURNS)
                draft = await rollout.sample(cursor, branch=branch + attempt * self.width, sampling=sampling)
                if isinstance(draft, PendingAction):
                    return _Branch(draft=draft, number=branch, attempt=attempt, sampling=sampling)
                attempt += 1
        except BudgetExceeded as short:
            rollout.stop(cursor, short.budget)
        return None

    async def _choose(self, rollout: Rollout, groups: "Sequence[Sequence[_Branch | None]]") -> "list[_Branch]":
        """The actions of a level that are executed, state by state."""
        ranked: list[tuple[int, _Branch]] = []
        for group in groups:
            sampled = [each for each in group if each is not None]
            first = {each.draft.parsed.text: each for each in reversed(sampled)}
            ranked += enumerate(each for each in sampled if not self.merge or first[each.draft.parsed.text] is each)
        if self.min_quality is None and (self.keep is None or len(ranked) <= self.keep):
            return [each for _, each in ranked]
        found = await together(rollout, [rate(rollout, self.quality, each.draft) for _, each in ranked])
        known = [each for each in found if each is not None]
        # An action without a quality is neither good nor bad: it ranks at the mean, and is not too low.
        scores = [sum(known) / max(1, len(known)) if each is None else each for each in found]
        best = sorted(range(len(ranked)), key=lambda index: (-scores[index], ranked[index][0], index))
        low = -math.inf if self.min_quality is None else self.min_quality
        good = [index for index in best if found[index] is None or scores[index] >= low]
        best = good or best
        return [ranked[index][1] for index in sorted(best[: self.keep])]

    async def _do(self, rollout: Rollout, branch: "_Branch | None") -> Cursor | Outcome:
        """The result of an action; a failed action is sampled again."""
        while branch is not None:
            try:
                after = await rollout.execute(branch.draft)
            except BudgetExceeded as short:
                rollout.stop(branch.draft, short.budget)
                return Outcome.TRUNCATED
            if after is not Outcome.FAILED:
                return after
            draft, again = branch.draft, branch.attempt + 1
            branch = await self._write(rollout, draft.cursor, branch.number, again, branch.sampling)
        return Outcome.FAILED

    async def _continue(self, rollout: Rollout, cursor: Cursor) -> None:
        for attempt in range(self.retries + 1):
            if await rollout.roll_out(cursor, branch=attempt) is not Outcome.FAILED:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """A sampled action, its branch number in its state, the number of failed attempts before it, and its sampling."""

    draft: PendingAction
    number: int
    attempt: int
    sampling: Sampling | None
