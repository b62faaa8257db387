"""Forks where the most likely tokens are nearly tied, kept when they differ from their parent."""

import itertools
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bough.explore.text_similarity import edit_ratio, rouge_l, suffix_match
from bough.needs import FORKS, Need
from bough.piece import AtLeast, Between, piece
from bough.rollout.budget import Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.piece import Piece, first_branch, write_on
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome


@dataclass(slots=True, kw_only=True, eq=False)
class Row:
    """A path under construction.

    Attributes:
        at: Where it continues, or how it ended.
        parent: The path from which it branched; None once no comparison is left.
        born: Index of the token in the action at which it branched.
        judged: Number of windows compared.
        draft: The last action so far.
    """

    at: Cursor | PendingAction | Outcome
    parent: "Row | None" = None
    born: int = 0
    judged: int = 0
    draft: PendingAction | None = None


@piece
class Latr:
    """LATR's growth (arXiv 2510.24302): forks at near-ties; assumes alternatives and that states step twice.

    One path starts. At each of its tokens the tied ones are the most likely, with probability p1, and those of the next
    `candidates - 1` for which

        p > floor  and  p1 - p < gap

    At a tie, a path branches off for each tied token other than the sampled one: that token is forced, and the tokens
    after it are sampled. Paths sample `windows[0]` tokens at a time, branches up to the next window. When a branch and
    its parent path have r tokens after the branching point, for each r of `windows`, the two are compared. The branch
    is pruned if they are similar by any given measure: edit distance over r below `edit`, the longest suffix of one
    that is in the other over r above `suffix`, ROUGE-L above `rouge`. A window in which one of them ended its turn is
    not compared, and the branch stays. At most round(paths * share) paths live at a time; among ties at equal token
    counts the more likely candidates come first, then the older paths. After `max_fork_tokens` tokens, or when the tree
    is full and no comparison is left, every path is sampled to its end, and independent chains fill up to `paths`. Two
    windows of 5:

        1 2 3 4 5  and  9 2 3 4 5       edit 0.2    suffix 0.8    rouge 0.8

    Probabilities are raw, without temperature and top-p. A forced token has no log-probability and gets no loss; all
    others are samples of the policy. The paths of a tree are not a sample of the policy: near-ties are explored evenly,
    whatever their joint probability. A piece that fails is sampled again up to `retries` times.

    The number of chains that fill a tree is known when the first path and its branches no longer branch. Where nothing
    is tied, they start when the first path has ended or has `max_fork_tokens`, so a tree then has up to twice the
    forward passes in a row of as many chains.

    Cost: a path that branched at token b costs T - b tokens less the forced one; a branch that is pruned at a window of
    r tokens costs r - 1. With C such tokens, a tree has paths * T - sum of b + C tokens, independent chains paths * T.
    The defaults are the paper's for the game of countdown; for mathematics it has floor .15, gap .25, suffix .2, rouge
    .5, no edit distance, and 1024 tokens.

    The released code takes the most likely token wherever it does not branch in this phase, as if it had been sampled,
    and fills short groups with copies of the first path. Where it exempts mathematical symbols, it drops them from the
    list of compared branches, but not from the list of branches to prune, so it prunes others. None of that is
    reproduced: paths are samples, short groups get new ones, and only compared branches are pruned. It also decays
    `share` over training (1, .75, .5, .25, 0), and stops at 98% of a batch.

    Attributes:
        paths: Paths of a tree.
        share: Share of them that may grow from the first path; in [0, 1].
        candidates: Number of the most likely tokens that can be tied.
        floor: Minimum probability of a tie, exclusive.
        gap: Maximum difference to the most likely token, exclusive.
        windows: Numbers of tokens after which branches are compared, ascending.
        edit: Branches below this edit distance are pruned; None for no such rule.
        suffix: Branches above this suffix match are pruned; None for no such rule.
        rouge: Branches above this ROUGE-L are pruned; None for no such rule.
        max_fork_tokens: Maximum length of a path at which it may branch, in tokens.
        retries: How often a failed piece is sampled again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    paths: Annotated[int, AtLeast(1)] = 8
    share: Annotated[float, Between(0, 1)] = 1.0
    candidates: Annotated[int, AtLeast(2)] = 2
    floor: float = 0.25
    gap: float = 0.15
    windows: tuple[int, ...] = (20, 30, 50)
    edit: float | None = 0.4
    suffix: float | None = None
    rouge: float | None = None
    max_fork_tokens: Annotated[int, AtLeast(1)] = 512
    retries: Annotated[int, AtLeast(0)] = 2

    def __post_init__(self) -> None:
        if not self.windows or self.windows[0] < 1 or list(self.windows) != sorted(set(self.windows)):
            raise ValueError(f"Latr.windows: got {self.windows}; need at least one number above 0, ascending")

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        # Branch 0 of a node continues its path; other branches have distinct numbers.
        names = itertools.count(1)
        rows = [Row(at=root)] if round(self.paths * self.share) else []
        pruned = 0
        for _ in range(0, self.max_fork_tokens, self.windows[0]):
            kept, pieces = await self._write(rollout, rows)
            pruned += len(rows) - len(kept)
            rows = kept + self._branch(rollout, kept, pieces, names)
            if all(isinstance(row.at, Outcome) for row in rows) or (self._full(rows) and not _pending(rows)):
                break
        rollout.builder.counts = replace(rollout.builder.counts, pruned_branches=pruned)
        chains = [Row(at=root) for _ in range(self.paths - len(rows))]
        ends = [self._finish(rollout, row, 0) for row in rows]
        calls = ends + [self._finish(rollout, chain, next(names)) for chain in chains]
        await together(rollout, calls, self._most(rollout, [*rows, *chains]))

    async def _write(self, rollout: Rollout, rows: list[Row]) -> tuple[list[Row], dict[int, Piece]]:
        """Extend all paths and prune; returns the kept paths, and each new piece by the `id` of its path."""
        live = [row for row in rows if not isinstance(row.at, Outcome)]
        pieces = await self._round(rollout, live)
        kept = [row for row in rows if not self._too_similar(row)]
        for row in kept:
            # A pruned parent has no children.
            row.parent = row.parent if row.parent in kept else None
        return kept, dict(zip(map(id, live), pieces, strict=True))

    async def _round(self, rollout: Rollout, live: Sequence[Row]) -> list[Piece]:
        """One piece of each path."""
        sampling = replace(rollout.sampling, top_probs=self.candidates)
        calls: list[Coroutine[None, None, Piece]] = []
        for row in live:
            assert not isinstance(row.at, Outcome)
            most = self.windows[0]
            if row.parent is not None and isinstance(row.at, PendingAction):
                # Up to the next comparison, so that no tokens are wasted on a pruned branch.
                have = len(row.at.tokens) - row.born
                most = next((window - have for window in self.windows if window > have), most)
            calls.append(write_on(rollout, row.at, branch=0, retries=self.retries, most=most, sampling=sampling))
        pieces = await together(rollout, calls, self._most(rollout, live, turns=1))
        for row, written in zip(live, pieces, strict=True):
            row.at, row.draft = written.after, written.draft
        return pieces

    def _most(self, rollout: Rollout, rows: Sequence[Row], turns: int | None = None) -> list[Usage]:
        """The maximum cost of continuing each path."""
        return [
            Usage() if isinstance(row.at, Outcome) else rollout.max_cost(row.at, turns=turns, attempts=self.retries + 1)
            for row in rows
        ]

    def _full(self, rows: Sequence[Row]) -> bool:
        return len(rows) >= round(self.paths * self.share)

    def _too_similar(self, row: Row) -> bool:
        """Whether a branch is to be pruned. Clears its parent when no comparison is left."""
        parent, draft = row.parent, row.draft
        if parent is None:
            return False
        parent_draft = parent.draft
        if (
            not isinstance(row.at, PendingAction)
            or draft is None
            or parent_draft is None
            or parent_draft.cursor is not draft.cursor
        ):
            row.parent = None
            return False
        ours, other = draft.tokens[row.born :], parent_draft.tokens[row.born :]
        # The last token of a complete parent action is not compared.
        length = min(len(ours), len(other) - parent_draft.complete)
        for window in self.windows[row.judged :]:
            if length < window:
                break
            row.judged += 1
            if self._similar(ours[:window], other[:window]):
                return True
        if row.judged == len(self.windows) or parent_draft.complete:
            row.parent = None
        return False

    def _similar(self, one: Sequence[int], other: Sequence[int]) -> bool:
        return (
            (self.edit is not None and edit_ratio(one, other) < self.edit)
            or (self.suffix is not None and suffix_match(one, other) > self.suffix)
            or (self.rouge is not None and rouge_l(one, other) > self.rouge)
        )

    def _branch(
        self, rollout: Rollout, rows: Sequence[Row], pieces: dict[int, Piece], names: Iterator[int]
    ) -> list[Row]:
        """New paths at the ties in the new pieces, up to the capacity."""
        ties: list[tuple[int, int, int, PendingAction, int, int]] = []
        for index, row in enumerate(rows):
            piece = pieces.get(id(row))
            if piece is None or piece.draft is None:
                continue
            draft = piece.draft
            begin = len(draft.tokens) - len(draft.top_probs)
            for offset, top in enumerate(draft.top_probs):
                for rank, token in self._tied(top, draft.tokens[begin + offset]):
                    ties.append((offset, rank, index, draft, begin + offset, token))
        capacity = max(round(self.paths * self.share) - len(rows), 0)
        born: list[Row] = []
        for _, _, index, draft, at, token in sorted(ties, key=lambda tie: tie[:3])[:capacity]:
            before = rollout.cut(draft, at) if at else draft.cursor
            forced = rollout.force_tokens(before, [token], branch=first_branch(next(names), self.retries))
            born.append(Row(at=forced, parent=rows[index], born=at))
        return born

    def _tied(self, top: Sequence[tuple[int, float]], sampled: int) -> list[tuple[int, int]]:
        """The tied tokens that were not sampled, with their ranks; none where there is no tie."""
        best = top[0][1]
        tied = [
            (rank, token)
            for rank, (token, chance) in enumerate(top)
            if rank == 0 or (chance > self.floor and best - chance < self.gap)
        ]
        return [(rank, token) for rank, token in tied if token != sampled] if len(tied) > 1 else []

    async def _finish(self, rollout: Rollout, row: Row, branch: int) -> None:
        """Sample to the end; `branch` is the branch of the first piece."""
        while not isinstance(row.at, Outcome):
            piece = await write_on(rollout, row.at, branch=branch, retries=self.retries)
            row.at, branch = piece.after, 0


def _pending(rows: Sequence[Row]) -> bool:
    return any(row.parent is not None for row in rows)
