"""One path, with several candidates for each of its turns."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bough.credit.normalize import normalize
from bough.explore.quality import Quality, rate
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import STUB, Outcome
from bough.tree.needs import CANDIDATE_SCORES, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Slate:
    """SLATE (arXiv 2602.23440): candidates for the next action, judged before they are done; one of them is done.

    From one place at a time, k candidates are written and judged. With A their z-scores (ddof 1), one is drawn and
    done, and what follows it is the next place:

        chance of a candidate = softmax(A / temperature)

    Judged 2 1 0 0 -1:    A 1.403 0.526 -0.351 -0.351 -1.228    chances 0.679 0.194 0.055 0.055 0.016

    A path of T turns costs k * T actions, and T steps of the environment: nothing is stepped twice. The others end
    where they were written, as paths of the tree with no success and the mark "stub" in their info; so `credit.Slate`
    teaches all candidates, by what they were judged. A run's success is that of the path which was done.

    Scores that differ at all are pulled apart by the z-score, so that one good candidate among bad ones is nearly
    always taken. The path is then not what the policy would do: its states are drawn from a tilted policy. Each action
    in it is a sample of the policy all the same. Its info says "pick", the chance with which it was taken.

    A candidate of which nobody can say how good it is, and one that fails, does not take part. When all fail, they are
    written anew, up to `retries` times. One candidate is always taken.

    Attributes:
        candidates: k.
        quality: Who judges.
        temperature: Of the choice, > 0 (eta in the paper).
        retries: How often candidates that fail are written again.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({CANDIDATE_SCORES})

    quality: Quality
    candidates: int = 5
    temperature: float = 0.7
    retries: int = 2

    def __post_init__(self) -> None:
        if self.candidates < 1 or self.retries < 0:
            raise ValueError(
                f"SlateCredit: got candidates={self.candidates}, retries={self.retries}; need candidates >= 1, retries >= 0"
            )
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"SlateCredit.temperature: got {self.temperature}; need a number above 0")

    def chances(self, scores: Sequence[float]) -> list[float]:
        """How likely each of some candidates is taken."""
        value = np.asarray(scores, dtype=np.float64)
        apart = normalize(value, np.zeros(len(value), dtype=np.int64), std="group") / self.temperature
        weight = np.exp(apart - apart.max(initial=-np.inf))
        return (weight / weight.sum()).tolist()

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        place: Cursor | Outcome = await rollout.root()
        while isinstance(place, Cursor):
            place = await self._turn(rollout, place)

    async def _turn(self, rollout: Rollout, place: Cursor) -> Cursor | Outcome:
        """Where the chosen candidate leads."""
        for attempt in range(self.retries + 1):
            first = attempt * self.candidates
            calls = [self._judged(rollout, place, first + number) for number in range(self.candidates)]
            drafts = [each for each in await together(rollout, calls) if each is not None]
            while drafts:
                chances = self.chances([score for _, score in drafts])
                for (draft, _), chance in zip(drafts, chances, strict=True):
                    rollout.builder.nodes[draft.node].info["pick"] = chance
                luck = random.Random(rollout.seed("slate", *place.branches, attempt, len(drafts)))
                (taken,) = luck.choices(range(len(drafts)), weights=chances)
                draft, _ = drafts.pop(taken)
                try:
                    after = await rollout.act(draft)
                except BudgetExceeded as short:
                    _end(rollout, [draft, *(each for each, _ in drafts)], short.budget)
                    return Outcome.TRUNCATED
                if after is not Outcome.FAILED:
                    _end(rollout, [each for each, _ in drafts], STUB)
                    return after
            if rollout.spent:
                break
        return Outcome.TRUNCATED

    async def _judged(self, rollout: Rollout, place: Cursor, branch: int) -> tuple[PendingAction, float] | None:
        """A candidate and how good it is."""
        try:
            draft = await rollout.write(place, branch=branch)
        except BudgetExceeded as short:
            rollout.stop(place, short.budget)
            return None
        score = await rate(rollout, self.quality, draft) if isinstance(draft, PendingAction) else None
        return None if score is None or not isinstance(draft, PendingAction) else (draft, score)


def _end(rollout: Rollout, drafts: Sequence[PendingAction], reason: str) -> None:
    """Let what was judged end here."""
    for draft in drafts:
        rollout.stop(draft, reason)
        rollout.builder.nodes[draft.node].info[STUB] = True
