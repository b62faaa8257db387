"""Searching: how many tasks an agent solves when it may try, look back, and choose."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, cast

from bough.engine import OpenAi
from bough.env import Host, Inline, Workers
from bough.explore import Agent, Grove, Grown, Waits, derive
from bough.store import Checkpoints, RunDirectory, Shelf, StoreError, write_json
from bough.store.atomic import explain_unwritable
from bough.train import Run, dump, load_run, override
from bough.train.check import check
from bough.train.watchdog import Watchdog
from bough.tree import ANSWER, Task, Tree
from bough.view import wilson

AT_ONCE = 64
"""Most tasks searched at a time."""

Tell: TypeAlias = Callable[[int, int], None]
"""Is called with the number of tasks done and of all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to on a list of tasks.

    Attributes:
        successes: By task id, whether the answer solves it; tasks that did not start are missing.
        failed: How many are missing.
        cost: Means over the tasks: "turns" (environment steps, of which "replayed"), "tokens" written, "calls" of the
            engine.
        low: Lower end of the 95 % interval of the success rate (Wilson).
        high: Upper end.
        trees: What was grown.
    """

    successes: Mapping[str, bool]
    failed: int
    cost: Mapping[str, float]
    low: float
    high: float
    trees: tuple[Tree, ...]

    @property
    def rate(self) -> float:
        """Share of successes, in [0, 1]; nan when no task was searched."""
        return sum(self.successes.values()) / len(self.successes) if self.successes else float("nan")


def search(
    target: Path | Run,
    changes: Sequence[str] = (),
    *,
    step: int | None = None,
    out: Path | None = None,
    tell: Tell | None = None,
) -> Found:
    """Search the held-out tasks of a run, by its explorer.

    Trees are kept as they finish, so a search that was stopped goes on where it was when it is called again.

    Args:
        target: A run directory, whose checkpoint acts; or a run whose engine brings its own model (`OpenAi`).
        changes: Fields of the run to change first, as on the command line: `explorer=mcts(width=4)`,
            `limits.tree_tokens=2000`, `heldout.tasks.count=100`.
        step: The checkpoint of a run directory; the newest whole one if None.
        out: The folder for the trees and results.json; None for neither.
        tell: Hears how far things are.

    Raises:
        StoreError: when there is no such run or checkpoint, or the folder holds another search.
        ConfigError: when the pieces do not fit together.
    """
    directory = RunDirectory.open(target) if isinstance(target, Path) else None
    run = override(load_run(directory) if directory else target, changes)
    check(run)
    waits = Waits()
    with Watchdog(waits, grace_s=run.guards.stuck_s):
        if directory is None:
            grown = asyncio.run(_remote(run, waits, out, tell))
        else:
            grown = asyncio.run(_local(run, directory, waits, step, out, tell))
    return _found(grown, out)


async def _local(
    run: Run, directory: RunDirectory, waits: Waits, step: int | None, out: Path | None, tell: Tell | None
) -> Grown:
    """Search with a checkpoint."""
    checkpoints = Checkpoints(directory=directory.checkpoints)
    checkpoint = checkpoints.latest().checkpoint if step is None else checkpoints.at(step)
    if checkpoint is None:
        raise StoreError(f"{directory.path}: got no whole checkpoint; need a run that has saved one")
    folder = _folder(run, out, f"step {checkpoint.step}")
    # Imported here, since it imports torch: a wrong argument is reported before that.
    from bough.train.workshop import Workshop

    shop = Workshop(run, directory.policy, waits)
    shop.policy.load_state(checkpoint.tensors("policy"))
    if shop.critic is not None:
        shop.critic.load_state(checkpoint.tensors("critic"))
    try:
        await shop.sync(moved=False)
        return await _grow(run, shop.grove, shop.heldout_tasks, folder, tell)
    finally:
        await shop.close()


async def _remote(run: Run, waits: Waits, out: Path | None, tell: Tell | None) -> Grown:
    """Search with a model that a server has."""
    if not isinstance(run.engine, OpenAi):
        raise StoreError(
            f"{run.name}: got a recipe whose engine is {type(run.engine).__name__}, and no weights for it; need the "
            "directory of a run, or an engine with a model of its own: engine=OpenAi(model=..., base_url=...)"
        )
    folder = _folder(run, out, run.engine.model)
    from bough.train.workshop import draw_tasks

    engine = run.engine.build()
    renderer = engine.renderer if run.engine.api == "chat" else run.policy.build(()).renderer
    if run.workers:
        host: Host = Workers(env=run.env, count=run.workers, deadline_s=run.worker_deadline_s)
    else:
        host = Inline(env=run.env)
    agent = Agent(engine=engine, renderer=renderer, context=run.context, parser=run.parser, sampling=run.sampling)
    grove = Grove(agent=agent, host=host, instructions=run.env.instructions, limits=run.limits, waits=waits)
    try:
        return await _grow(run, grove, draw_tasks(run, run.heldout.tasks), folder, tell)
    finally:
        await host.close()
        await engine.close()


async def _grow(run: Run, grove: Grove, tasks: Sequence[Task], folder: Shelf | None, tell: Tell | None) -> Grown:
    """One tree for each task."""
    shelf = _Counted(folder, tell, len(tasks))
    wide = replace(grove, at_once=AT_ONCE)
    return await wide.grow(run.explorer, tasks, seed=derive(run.seed, "search"), shelf=shelf)


class _Counted:
    """A shelf that says how far things are; without a folder it keeps nothing."""

    def __init__(self, folder: Shelf | None, tell: Tell | None, of: int) -> None:
        self._folder, self._tell = folder, tell
        self._done, self._of = 0, of

    def get(self, place: int, task: Task) -> Tree | None:
        tree = None if self._folder is None else self._folder.get(place, task)
        if tree is not None:
            self._count()
        return tree

    def put(self, place: int, tree: Tree) -> None:
        if self._folder is not None:
            self._folder.put(place, tree)
        self._count()

    def _count(self) -> None:
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._of)


def _folder(run: Run, out: Path | None, who: str) -> Shelf | None:
    """Where trees are kept; a folder belongs to one search."""
    if out is None:
        return None
    # As it is read back: a tuple is a list in JSON.
    about = cast("dict[str, object]", json.loads(json.dumps({"agent": who, "run": dump(run)})))
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
    return Shelf(directory=there.trees)


def _found(grown: Grown, out: Path | None) -> Found:
    trees, failed = grown.trees, len(grown.unstarted)
    successes = {tree.task.id: _solved(tree) for tree in trees}
    costs = [cast("Mapping[str, int]", tree.info[0]["cost"]) for tree in trees]
    cost = {name: sum(each[name] for each in costs) / len(costs) for name in costs[0]} if costs else {}
    low, high = wilson(sum(successes.values()), len(successes))
    found = Found(successes=successes, failed=failed, cost=cost, low=low, high=high, trees=trees)
    if out is not None:
        write_json(out / "results.json", {"success": found.rate, "cost": cost, "failed": failed, "tasks": successes})
    return found


def _solved(tree: Tree) -> bool:
    """Whether the answer of a search solves the task; of an explorer that gives none, whether some path does."""
    answers = [info for info in tree.info if info.get(ANSWER)]
    return any(info.get("success") is True for info in answers or tree.info)


def summary(found: Found) -> str:
    """The result in one line."""
    cost = ", ".join(f"{found.cost[name]:,.1f} {name}" for name in ("turns", "tokens", "calls") if name in found.cost)
    failed = f"; {found.failed} tasks failed and do not count" if found.failed else ""
    interval = f"95 % interval {found.low:.1%} to {found.high:.1%}"
    return f"success {found.rate:.1%} of {len(found.successes)} tasks ({interval}); {cost} a task{failed}"
