"""Writes the report of a run from the files in its directory."""

from bough.config.config import dump
from bough.store import RunDirectory, read_metrics, read_trees
from bough.store.atomic import explain_full_disk
from bough.train.recorder import StoredHeldout, read_heldout_results
from bough.train.run import Run
from bough.tree import Credited, groups
from bough.view import Panel, Report, headline, rising_rewards, write_report


def write_run_report(run: Run, directory: RunDirectory, note: str = "") -> str:
    """Write report.html. All its content comes from disk, so a run that stopped early has a report too.

    Args:
        run: The run.
        directory: Its directory.
        note: A note at the top.

    Returns:
        The result in one sentence.
    """
    written = sorted(directory.trees.glob("step_*.safetensors"))
    credited = read_trees(written[-1], Credited) if written else []
    metrics = read_metrics(directory.metrics) if directory.metrics.is_file() else []
    rising = rising_rewards(metrics, run.health.reward_window)
    report = Report(
        name=run.name,
        recipe=f"{type(run.method.credit).__name__} and {type(run.method.objective).__name__} on {run.world.name}",
        config=dump(run),
        manifest=directory.read_manifest(),
        metrics=metrics,
        panels=panels(run, directory),
        groups=groups(credited),
        notes=(*((note,) if note else ()), *_late(run), *map(str, rising)),
    )
    with explain_full_disk(directory.report, None):
        write_report(directory.report, report)
    return headline(report.panels)


def _late(run: Run) -> list[str]:
    """Notes on tasks that the oracle begins."""
    sources = {"tasks": run.world.tasks, "evaluation.tasks": run.world.evaluation.tasks}
    begun = {field: source.actions_left for field, source in sources.items() if source.actions_left is not None}
    return [f"The oracle begins tasks: {field}.actions_left={left}" for field, left in begun.items()]


def panels(run: Run, directory: RunDirectory) -> tuple[Panel, ...]:
    """The first held-out result and the last."""
    results = read_heldout_results(directory)
    if not results:
        return ()
    first, last = min(results), max(results)
    named = {first: "after warm-up" if run.world.warmup.imitates else "before training"}
    if last != first:
        ended = last == run.last_step
        named[last] = "after training" if ended else f"after {run.named_step(last)}"
    return tuple(_panel(label, results[step]) for step, label in named.items())


def _panel(label: str, result: StoredHeldout) -> Panel:
    return Panel(
        label=label,
        task_ids=tuple(result.successes),
        successes=tuple(result.successes.values()),
        rewards=result.rewards,
        graded=result.graded,
    )
