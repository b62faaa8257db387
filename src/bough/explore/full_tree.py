"""Level by level: every place is forked, down to some depth; the rest of each path is played alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.explore.quality import FormatScore, Quality, rate
from bough.rollout.budget import BudgetExceeded, Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome
from bough.tree.needs import FORKS, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTree:
    """Experimental: TreeRPO's full tree (arXiv 2506.05183): `width` branches of a place, `depth` deep; needs forks.

    At each level `width` actions are written in every live place, and done; after `depth` levels what lives is played
    to the end, one path each. Two branches at two levels, of episodes of four turns:

        level 1   2 actions      level 2   4      then   4 and 4      14 in all, where 4 chains would be 16

    The branches of a place are a group of `TreeRpo`. Without failures and early ends, episodes of T turns have
    width + width^2 + ... + width^depth + width^depth * (T - depth) actions. TreeRPO forks after so many tokens, here
    after turns; defaults of 8 and 3, from a summary, make 512 paths.

    With `keep`, only the best of a level are done and live on, as in DialTree-RPO (arXiv 2510.02286): dialogues branch
    at every turn, and what is malformed or surplus is pruned. Of equally good ones, the first branch of every place
    comes before the second of any. With `merge`, an action that was written before in the same place is not done
    again, as TreePS-RAG (arXiv 2601.06922) keeps its siblings diverse; its rule is not known. What is not done stays
    in the tree as it was sampled, but is no path: it counts in no group, no mean and no loss. So with `merge` a group
    compares different actions, however likely each of them was.

    A path that fails is played anew from its last fork, up to `retries` times. When a budget of the tree runs out,
    every place that lives is the end of a path.

    Attributes:
        width: Branches of a place, N in the paper.
        depth: How often a path is forked, D.
        keep: Most actions that are done at a level; None for all.
        quality: Which are kept; not asked otherwise.
        merge: Whether an action is done once in a place, however often it was written there.
        retries: How often a branch that fails is tried again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    width: int = 8
    depth: int = 3
    keep: int | None = None
    quality: Quality = FormatScore()
    merge: bool = False
    retries: int = 2

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 0 or self.retries < 0:
            raise ValueError(
                f"FullTree: got width={self.width}, depth={self.depth}, retries={self.retries}; need width >= 1 and the "
                "others >= 0"
            )
        if self.keep is not None and self.keep < 1:
            raise ValueError(f"FullTree.keep: got {self.keep}; need at least 1, or None")

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        live = [await rollout.root()]
        for _ in range(self.depth):
            calls = [self._write(rollout, place, branch, 0) for place in live for branch in range(self.width)]
            written = await together(rollout, calls)
            families = [written[at : at + self.width] for at in range(0, len(written), self.width)]
            chosen = await self._choose(rollout, families)
            after = await together(rollout, [self._do(rollout, each) for each in chosen])
            live = [place for place in after if isinstance(place, Cursor)]
        await together(rollout, [self._alone(rollout, place) for place in live])

    async def _write(self, rollout: Rollout, place: Cursor, branch: int, attempt: int) -> "_Branch | None":
        """An action; None when all attempts from this one on failed, or a budget can't pay."""
        try:
            while attempt <= self.retries:
                if not rollout.budget.affords(Usage(turns=1)):
                    raise BudgetExceeded("tree_turns")
                draft = await rollout.write(place, branch=branch + attempt * self.width)
                if isinstance(draft, PendingAction):
                    return _Branch(draft=draft, number=branch, attempt=attempt)
                attempt += 1
        except BudgetExceeded as short:
            rollout.stop(place, short.budget)
        return None

    async def _choose(self, rollout: Rollout, families: "Sequence[Sequence[_Branch | None]]") -> "list[_Branch]":
        """What is done of a level, place by place."""
        ranked: list[tuple[int, _Branch]] = []
        for family in families:
            born = [each for each in family if each is not None]
            first = {each.draft.parsed.action: each for each in reversed(born)}
            ranked += enumerate(each for each in born if not self.merge or first[each.draft.parsed.action] is each)
        if self.keep is None or len(ranked) <= self.keep:
            return [each for _, each in ranked]
        found = await together(rollout, [rate(rollout, self.quality, each.draft) for _, each in ranked])
        worth = [-float("inf") if each is None else each for each in found]
        best = sorted(range(len(ranked)), key=lambda place: (-worth[place], ranked[place][0], place))
        return [ranked[place][1] for place in sorted(best[: self.keep])]

    async def _do(self, rollout: Rollout, branch: "_Branch | None") -> Cursor | Outcome:
        """Where an action leads; one that fails is written anew."""
        while branch is not None:
            try:
                after = await rollout.act(branch.draft)
            except BudgetExceeded as short:
                rollout.stop(branch.draft, short.budget)
                return Outcome.TRUNCATED
            if after is not Outcome.FAILED:
                return after
            branch = await self._write(rollout, branch.draft.cursor, branch.number, branch.attempt + 1)
        return Outcome.FAILED

    async def _alone(self, rollout: Rollout, place: Cursor) -> None:
        for attempt in range(self.retries + 1):
            if await rollout.follow(place, branch=attempt) is not Outcome.FAILED:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """An action that was written, which branch of its place it is, and how many attempts failed before."""

    draft: PendingAction
    number: int
    attempt: int
