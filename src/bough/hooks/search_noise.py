"""ZeroSearch: the results of searches degrade during training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskRewriter, Teacher
from bough.piece import piece
from bough.schedule import ExponentialSchedule
from bough.tree import Rewarded, Task


@piece
class SearchNoise:
    """ZeroSearch's curriculum (arXiv 2505.04588): the probability of useless search results grows during training.

    Step i of m gives the tasks of its batch the number "noise", which `SearchQa` reads:

        noise = start + (base ** (i / m) - 1) / (base - 1) * (end - start)

        start 0, end .5, base 4, m 4      0  .069  .167  .305  .5  .5  ...

    The paper's recipe has start 0, end .5, base 4 and 203 steps. Its documents are written by a language model; those
    of `SearchQa` come from its index. Held-out tasks keep the environment's own noise.

    Try: `bough train grpo --on search hooks='[SearchNoise(start=0,end=0.5,steps=150)]'`

    Metrics: `search/noise`, of the tasks of this step; with staleness they are drawn before the step begins.

    Attributes:
        start: Noise of the first step, in [0, 1].
        end: Noise from step `steps` on, in [0, 1].
        base: Above 1 the noise grows late, below 1 early; above 0 and not 1.
        steps: m, >= 1.
    """

    start: float = 0.0
    end: float = 0.5
    base: float = 4.0
    steps: int = 203

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"SearchNoise.{name}: got {getattr(self, name)}; need a number from 0 to 1")
        if not self.base > 0 or self.base == 1 or self.steps < 1:
            raise ValueError(
                f"SearchNoise: got base={self.base}, steps={self.steps}; need a base above 0 that is not 1, and at "
                "least 1 step"
            )

    def at(self, step: int) -> float:
        """The noise of a step, 0 for the first."""
        curve = ExponentialSchedule(start=self.start, end=self.end, base=self.base)
        return curve.at_progress(min(step / self.steps, 1.0))

    def build(self, setup: HookSetup) -> "SearchNoiseState":
        """Return the state before the first step."""
        return SearchNoiseState(self, setup)


@dataclass(slots=True, kw_only=True)
class SearchNoiseData:
    """The state of the hook.

    Attributes:
        steps: The number of finished steps.
    """

    steps: int = 0


class SearchNoiseState(BatchHook[SearchNoise], TaskRewriter):
    """The number of finished steps."""

    def __init__(self, settings: SearchNoise, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: SearchNoiseData = SearchNoiseData()
        self._played: float | None = None

    async def rewrite(self, tasks: Sequence[Task], _teacher: Teacher, _seed: int) -> list[Task]:
        """The tasks with the noise of this step."""
        noise = self.settings.at(self.data.steps)
        return [replace(task, data={**task.data, "noise": noise}) for task in tasks]

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Note the noise of the batch's tasks, and return the batch unchanged."""
        noises = (each.tree.task.data.get("noise") for each in rewarded if not each.tree.replayed)
        self._played = next((noise for noise in noises if isinstance(noise, float)), self._played)
        return list(rewarded)

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        noise = self.settings.at(self.data.steps) if self._played is None else self._played
        self.data.steps, self._played = self.data.steps + 1, None
        return {"search/noise": noise}
