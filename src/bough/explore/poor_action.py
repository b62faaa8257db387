"""The first action of a path that a quality finds poor."""

from dataclasses import field

from bough.checks import INFINITE
from bough.engine import EngineFault
from bough.explore.quality import LlmJudge, Quality
from bough.piece import piece
from bough.rollout.attempt import Attempt
from bough.rollout.budget import BudgetExceeded
from bough.rollout.rollout import Rollout


@piece
class FirstPoorAction:
    """The first action with a quality below a threshold; without one the last, which led to the end.

    With `quality=CriticQuality()` a process reward model decides, the run's own value head; with an `LlmJudge` a model
    of a role. Actions are scored in order, up to the first poor one; an action without a score is not poor. When a
    score exceeds a budget or the engine breaks, no action is wrong.

    Qualities .9 .8 .2 .7, below .5: the third.

    Attributes:
        quality: Scores an action.
        below: An action with a lower quality is wrong.
    """

    quality: Quality = field(default_factory=LlmJudge)
    below: float = field(default=0.0, metadata=INFINITE)

    async def __call__(self, rollout: Rollout, lost: Attempt) -> int | None:
        """The index of the step; see `Blame`."""
        for step, action in enumerate(lost.actions):
            try:
                found = await self.quality(rollout, rollout.taken(lost.cursors[step], action))
            except (BudgetExceeded, EngineFault):
                return None
            if found is not None and found < self.below:
                return step
        return len(lost.actions) - 1 if lost.actions else None
