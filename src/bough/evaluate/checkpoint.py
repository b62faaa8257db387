"""Evaluates a run's checkpoint on held-out tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bough.config import override
from bough.evaluate.failed import require_some
from bough.rollout import Deadlines
from bough.store import Checkpoints, RunDirectory, StoreError
from bough.train import HeldoutResult, load_run, measure
from bough.train.event_loop import run_coroutine
from bough.train.watchdog import Watchdog
from bough.tree import derive
from bough.view import cut_note, failed_note, invalid_note, wilson

if TYPE_CHECKING:
    from bough.train.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointResult:
    """A checkpoint's result.

    Attributes:
        step: The checkpoint's.
        score: Task by task.
        low: Lower end of the 95 % interval of the success rate (Wilson).
        high: Upper end.
    """

    step: int
    score: HeldoutResult
    low: float
    high: float

    def __str__(self) -> str:
        return sentence(self)

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


def evaluate(path: Path, *, step: int | None = None, changes: Sequence[str] = ()) -> CheckpointResult:
    """Sample one path for every held-out task of a run with one of its checkpoints.

    Args:
        path: The run directory; nothing in it is changed.
        step: The checkpoint; the newest complete one if None.
        changes: Fields of the run to change first, as on the command line: other tasks, another temperature.

    Raises:
        StoreError: when there is no such run or checkpoint.
        AllFailed: when every task failed; has the most frequent cause.
    """
    with RunDirectory.open(path).in_its_folder() as directory:
        run = override(load_run(directory), changes)
        checkpoints = Checkpoints(directory=directory.checkpoints)
        checkpoint = checkpoints.latest().checkpoint if step is None else checkpoints.at(step)
        if checkpoint is None:
            raise StoreError(f"{path}: got no whole checkpoint; need a run that has saved one")
        # Imported here because it imports torch; wrong arguments are reported earlier.
        from bough.train.runtime import Runtime

        deadlines = Deadlines()
        with Watchdog(deadlines, grace_s=run.health.stuck_s):
            runtime = Runtime(run, directory.policy, deadlines, trains=False)
            runtime.load(checkpoint)
            score = run_coroutine(_play(runtime))
    require_some(score.successes, score.failures)
    low, high = wilson(sum(score.successes.values()), len(score.successes))
    return CheckpointResult(step=checkpoint.step, score=score, low=low, high=high)


async def _play(runtime: "Runtime") -> HeldoutResult:
    settings = runtime.run.world.evaluation
    try:
        await runtime.sync(moved=False)
        seed = derive(runtime.run.seed, "heldout")
        explorer, tasks = runtime.run.method.explorer, runtime.heldout_tasks
        seat, temperature = runtime.main.trainee.seat, settings.temperature
        return await measure(runtime.rollouts, explorer, tasks, temperature=temperature, seed=seed, seat=seat)
    finally:
        await runtime.close()


def sentence(evaluation: CheckpointResult) -> str:
    """The result in one line, and one line each for failed tasks, truncated paths, cut and invalid actions."""
    score = evaluation.score
    outgrown = score.truncated_context
    cut = f"{outgrown} paths exceeded the context and were truncated" if outgrown else ""
    notes = (failed_note(score.failures), cut, cut_note(score.actions), invalid_note(score.actions))
    result = (
        f"step {evaluation.step}: success {score.rate:.1%} of {len(score.successes)} held-out tasks "
        f"(95 % interval {evaluation.low:.1%} to {evaluation.high:.1%}), {score.turns:.1f} turns a path"
    )
    return "\n".join([result, *(note for note in notes if note)])
