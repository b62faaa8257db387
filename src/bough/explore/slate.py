"""One path, with several candidates for each of its turns."""

import random
from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np

from bough.credit.normalize import normalize
from bough.explore.quality import Quality, rate
from bough.needs import CANDIDATE_SCORES, Need
from bough.piece import Above, AtLeast, piece
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy


@piece
class Slate:
    """SLATE (arXiv 2602.23440): candidates for the next action are scored, and one of them is executed.

    In one state at a time, k candidates are sampled and scored. With A their z-scores (ddof 1), one is drawn and
    executed, and the state after it is the next:

        chance of a candidate = softmax(A / temperature)

    Scores 2 1 0 0 -1:    A 1.403 0.526 -0.351 -0.351 -1.228    chances 0.679 0.194 0.055 0.055 0.016

    A path of T turns costs k * T actions, and T steps of the environment: no state is stepped twice. The other
    candidates end where they were sampled, as paths of the tree without success, truncated by `NOT_EXECUTED`; so
    `credit.Slate` trains all candidates, by their scores. A run's success is that of the executed path.

    The z-score separates scores that differ at all, so one good candidate among bad ones is nearly always drawn. The
    path is then not a sample of the policy: its states come from a tilted policy. Each action in it is still a sample
    of the policy. Its info has the probability of the draw as "pick".

    A candidate without a score and one that fails are left out. When all fail, they are sampled again up to `retries`
    times. A single candidate is always drawn.

    Attributes:
        candidates: k.
        quality: Scores the candidates.
        temperature: Temperature of the draw, > 0 (eta in the paper).
        retries: How often failed candidates are sampled again.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({CANDIDATE_SCORES})

    quality: Quality
    candidates: Annotated[int, AtLeast(1)] = 5
    temperature: Annotated[float, Above(0)] = 0.7
    retries: Annotated[int, AtLeast(0)] = 2

    def chances(self, scores: Sequence[float]) -> list[float]:
        """Probability of each candidate [candidates]."""
        value = np.asarray(scores, dtype=np.float64)
        logits = normalize(value, np.zeros(len(value), dtype=np.int64), std="group") / self.temperature
        weight = np.exp(logits - logits.max(initial=-np.inf))
        return (weight / weight.sum()).tolist()

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        cursor: Cursor | Outcome = await rollout.root()
        while isinstance(cursor, Cursor):
            cursor = await self._turn(rollout, cursor)

    async def _turn(self, rollout: Rollout, cursor: Cursor) -> Cursor | Outcome:
        """The result of the drawn candidate."""
        for attempt in range(self.retries + 1):
            first = attempt * self.candidates
            calls = [self._scored(rollout, cursor, first + number) for number in range(self.candidates)]
            drafts = [each for each in await together(rollout, calls) if each is not None]
            while drafts:
                chances = self.chances([score for _, score in drafts])
                for (draft, _), chance in zip(drafts, chances, strict=True):
                    rollout.builder.nodes[draft.node].info["pick"] = chance
                rng = random.Random(rollout.seed("slate", *cursor.branches, attempt, len(drafts)))
                (taken,) = rng.choices(range(len(drafts)), weights=chances)
                draft, _ = drafts.pop(taken)
                try:
                    after = await rollout.execute(draft)
                except BudgetExceeded:
                    _end(rollout, [draft, *(each for each, _ in drafts)])
                    return Outcome.TRUNCATED
                if after is not Outcome.FAILED:
                    _end(rollout, [each for each, _ in drafts])
                    return after
            if rollout.spent:
                break
        return Outcome.TRUNCATED

    async def _scored(self, rollout: Rollout, cursor: Cursor, branch: int) -> tuple[PendingAction, float] | None:
        """A candidate and its score."""
        try:
            draft = await rollout.sample(cursor, branch=branch)
        except BudgetExceeded as short:
            rollout.stop(cursor, short.budget)
            return None
        score = await rate(rollout, self.quality, draft) if isinstance(draft, PendingAction) else None
        return None if score is None or not isinstance(draft, PendingAction) else (draft, score)


def _end(rollout: Rollout, drafts: Sequence[PendingAction]) -> None:
    """End the paths of scored candidates."""
    for draft in drafts:
        rollout.stop(draft, TruncatedBy.NOT_EXECUTED)
