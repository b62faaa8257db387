"""Evaluates an agent by search: the share of tasks that it solves with an explorer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import cast

import numpy as np

from bough.config import dump, override
from bough.engine import OwnModel
from bough.evaluate.agent import check_heldout, checkpoint_of
from bough.evaluate.failed import require_some
from bough.evaluate.progress import CountedTrees, OnProgress
from bough.evaluate.server import server_agent
from bough.rollout import Deadlines, RolloutRunner, Rollouts
from bough.store import PartialTrees, RunDirectory, StoreError, write_json
from bough.store.atomic import explain_unwritable
from bough.train import Run, load_run
from bough.train.check import check
from bough.train.event_loop import run_coroutine
from bough.train.pinned import pinned
from bough.train.provenance import Provenance
from bough.train.seats import first_seat
from bough.train.watchdog import Watchdog
from bough.tree import ActionCounts, Outcome, RolloutCounts, Task, Ternary, Tree, count_actions, derive, leaves
from bough.view import cut_note, failed_note, invalid_note, late_note, wilson

AT_ONCE = 64
"""Maximum number of concurrent searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search on a list of tasks.

    Attributes:
        successes: By task id, whether the answer solves it; tasks that failed are missing.
        failures: By id of each failed task, the cause: it did not start, or every path failed.
        faults: Number of failed paths in the other tasks.
        unanswered: Number of judge queries without a parsable answer.
        unjudged: Number of nodes whose value or rating a model was asked for and did not give; they have none.
        refused: Number of questions to models that exceeded their context.
        actions: Counts of the policy's actions.
        cost: Means over the tasks in `successes`: "turns" (environment steps, of which "replayed"), sampled "tokens",
            "calls" of the engine.
        low: Lower end of the 95 % interval of the success rate (Wilson).
        high: Upper end.
        trees: One tree per task.
    """

    successes: Mapping[str, bool]
    failures: Mapping[str, str]
    faults: int
    unanswered: int
    unjudged: int
    refused: int
    actions: ActionCounts
    cost: Mapping[str, float]
    low: float
    high: float
    trees: tuple[Tree, ...] = field(repr=False)

    def __str__(self) -> str:
        return summary(self)

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"

    @property
    def rate(self) -> float:
        """Fraction of successes, in [0, 1]."""
        return sum(self.successes.values()) / len(self.successes)


def search(
    target: Path | Run,
    changes: Sequence[str] = (),
    *,
    step: int | None = None,
    out: Path | None = None,
    accept_changes: bool = False,
    on_progress: OnProgress | None = None,
) -> SearchResult:
    """Search the held-out tasks of a run with its explorer.

    Finished trees are stored, so a repeated call continues a stopped search. A tree in which every path failed is not
    stored, and its task is searched again.

    Args:
        target: A run directory, whose checkpoint acts; or a run whose engine has its own model (`OpenAi`).
        changes: Fields of the run to change first, as on the command line: `explorer=mcts(width=4)`,
            `limits.tree_tokens=2000`, `evaluation.tasks.count=100`.
        step: The checkpoint of a run directory; the newest complete one if None.
        out: The folder for the trees and results.json; None for neither.
        accept_changes: Whether to go on when files or held-out tasks changed since the run was provenance.
        on_progress: Called with the progress.

    Raises:
        StoreError: when there is no such run or checkpoint, or the folder holds another search.
        ConfigError: when the pieces do not fit together; when files or held-out tasks changed, without
            `accept_changes`.
        AllFailed: when every task failed; has the most frequent cause.
    """
    out = None if out is None else out.absolute()
    if isinstance(target, Run):
        run = override(target, changes)
        return _found(run, _search(run, None, step, out, on_progress), out)
    with RunDirectory.open(target).in_its_folder() as directory:
        provenance = Provenance(directory=directory, run=load_run(directory), accept=accept_changes)
        run = pinned(override(provenance.run, changes))
        provenance.check_files(run)
        return _found(run, _search(run, provenance, step, out, on_progress), out)


def _search(
    run: Run, provenance: Provenance | None, step: int | None, out: Path | None, tell: OnProgress | None
) -> Rollouts:
    """Search with a checkpoint of a run directory, or with the model of a server."""
    check(run)
    deadlines = Deadlines()
    with Watchdog(deadlines, grace_s=run.health.stuck_s):
        if provenance is None:
            return run_coroutine(_remote(run, deadlines, out, tell))
        return run_coroutine(_local(run, provenance, deadlines, step, out, tell))


async def _local(
    run: Run, provenance: Provenance, deadlines: Deadlines, step: int | None, out: Path | None, tell: OnProgress | None
) -> Rollouts:
    """Search with a checkpoint."""
    directory = provenance.directory
    checkpoint = checkpoint_of(directory, step)
    folder = _folder(run, out, f"step {checkpoint.step}")
    # Imported here because it imports torch; wrong arguments are reported earlier.
    from bough.train.kept_threads import kept_threads
    from bough.train.runtime import Runtime

    with kept_threads():
        runtime = Runtime(run, directory.policy, deadlines, trains=False)
        runtime.load(checkpoint)
        try:
            check_heldout(provenance, run, runtime.heldout_tasks)
            await runtime.sync(moved=False)
            return await _grow(run, runtime.rollouts, runtime.heldout_tasks, folder, tell)
        finally:
            await runtime.close()


async def _remote(run: Run, deadlines: Deadlines, out: Path | None, tell: OnProgress | None) -> Rollouts:
    """Search with the model of a server."""
    settings = run.world.execution.engine
    if not isinstance(settings, OwnModel):
        raise StoreError(
            f"{run.name}: got a run without weights, with the engine {type(settings).__name__}; need the directory of "
            "a trained run, or an engine with a model of its own: engine=OpenAi(model=..., base_url=...)"
        )
    folder = _folder(run, out, settings.model)
    async with server_agent(run, settings, deadlines) as served:
        return await _grow(run, served.runner, served.tasks, folder, tell)


async def _grow(
    run: Run, runner: RolloutRunner, tasks: Sequence[Task], folder: PartialTrees | None, tell: OnProgress | None
) -> Rollouts:
    """One tree for each task."""
    store = CountedTrees(folder, tell, len(tasks))
    wide = replace(runner, max_concurrent=AT_ONCE)
    return await wide.run(run.method.explorer, tasks, seed=derive(run.seed, "search"), store=store)


def _folder(run: Run, out: Path | None, agent: str) -> PartialTrees | None:
    """The folder of the trees; each folder belongs to one search."""
    if out is None:
        return None
    # Compared after a JSON round trip, which turns tuples into lists.
    about = cast("dict[str, object]", json.loads(json.dumps({"agent": agent, "run": dump(run)})))
    there = RunDirectory(path=out)
    if there.config.is_file():
        if there.read_config() != about:
            raise StoreError(f"{out}: got the folder of another search; choose another --out, or remove it")
    elif out.exists() and any(out.iterdir()):
        raise StoreError(f"{out}: got a folder that holds something else; choose another --out")
    else:
        with explain_unwritable(out):
            out.mkdir(parents=True, exist_ok=True)
        there.write_config(about)
    return PartialTrees(directory=there.trees)


def _found(run: Run, grown: Rollouts, out: Path | None) -> SearchResult:
    seat = first_seat(run)
    failures = grown.failures
    trees = tuple(tree for tree in grown.trees if tree.task.id not in failures)
    successes = {tree.task.id: _solved(tree, seat) for tree in trees}
    require_some(successes, failures)
    cost = _mean_cost([tree.counts for tree in trees])
    low, high = wilson(sum(successes.values()), len(successes))
    found = SearchResult(
        successes=successes,
        failures=failures,
        faults=sum(int((tree.outcome[leaves(tree)] == Outcome.FAILED).sum()) for tree in trees),
        unanswered=sum(tree.counts.unanswered for tree in trees),
        unjudged=sum(tree.counts.unjudged for tree in trees),
        refused=sum(tree.counts.refused for tree in trees),
        actions=count_actions(trees),
        cost=cost,
        low=low,
        high=high,
        trees=trees,
    )
    if out is not None:
        numbers = {"success": found.rate, "low": low, "high": high, "cost": cost, **asdict(found.actions)}
        faults = {
            "faults": found.faults,
            "unanswered": found.unanswered,
            "unjudged": found.unjudged,
            "refused": found.refused,
            "failed": len(failures),
        }
        write_json(out / "results.json", {**numbers, **faults, "failures": failures, "tasks": successes})
    return found


def _solved(tree: Tree, seat: str) -> bool:
    """Whether the answer of a search solves the task for a seat; without an answer, whether some path does."""
    success = tree.success_of(seat)
    success = success[tree.answer] if tree.answer.any() else success
    return bool(np.any(success == Ternary.YES))


def _mean_cost(counts: Sequence[RolloutCounts]) -> dict[str, float]:
    """The means of `SearchResult.cost`."""
    totals = {
        "turns": sum(each.turns for each in counts),
        "tokens": sum(each.tokens for each in counts),
        "calls": sum(each.calls for each in counts),
        "replayed": sum(each.replayed_turns for each in counts),
    }
    return {name: total / len(counts) for name, total in totals.items()}


def summary(found: SearchResult) -> str:
    """The result in one line, and one line each for failed tasks and paths, cut and invalid actions."""
    cost = ", ".join(f"{found.cost[name]:,.1f} {name}" for name in ("turns", "tokens", "calls") if name in found.cost)
    interval = f"95 % interval {found.low:.1%} to {found.high:.1%}"
    notes = [
        failed_note(found.failures),
        f"paths of these tasks that failed: {found.faults:,}" if found.faults else "",
        f"queries without a parsable answer: {found.unanswered:,}" if found.unanswered else "",
        f"nodes of the search without a judgement: {found.unjudged:,}" if found.unjudged else "",
        f"questions that exceeded the context of their model: {found.refused:,}" if found.refused else "",
        cut_note(found.actions),
        invalid_note(found.actions),
    ]
    late = late_note(sum(bool(tree.task.start) for tree in found.trees))
    result = f"success {found.rate:.1%} of {len(found.successes)} tasks{late} ({interval}); {cost} a task"
    return "\n".join([result, *(note for note in notes if note)])
