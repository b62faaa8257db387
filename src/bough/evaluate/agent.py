"""The agent of an evaluation: a checkpoint of a run, another policy in its place, or the model of a server."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from bough.config import ConfigError, override
from bough.engine import OwnModel
from bough.env.hosts.workers import to_stderr
from bough.evaluate.server import server_agent
from bough.rollout import Deadlines, RolloutRunner
from bough.store import Checkpoint, Checkpoints, RunDirectory, StoreError
from bough.train import Run, World, load_run
from bough.train.check import check, check_files
from bough.train.pinned import pinned
from bough.train.provenance import Provenance
from bough.train.seats import first_seat, refuse_own_weights
from bough.tree import Task

Preset: TypeAlias = Callable[[World], World]
"""Sets the policy of a world, and the settings that depend on it."""

Adapt: TypeAlias = Callable[[Sequence[Task]], Awaitable[None]]
"""Has the weights in this process imitate the oracle on tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluee:
    """An agent, its environment, and its tasks.

    Attributes:
        name: "step 24" for a checkpoint; the model of a server; the class of another policy.
        runner: Grows trees.
        tasks: The held-out tasks.
        seat: The seat of the policy; "" in an environment for one agent.
        adapt: None for the model of a server.
    """

    name: str
    runner: RolloutRunner
    tasks: list[Task]
    seat: str = ""
    adapt: Adapt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationTarget:
    """What is evaluated.

    Attributes:
        run: The run.
        assets: The folder with the files of the run's policy.
        checkpoint: The weights; None for another policy.
        provenance: Files, data, tasks and versions of the run's directory; None for a run without a directory.
    """

    run: Run
    assets: Path
    checkpoint: Checkpoint | None
    provenance: Provenance | None = None

    @asynccontextmanager
    async def open(self, deadlines: Deadlines) -> AsyncGenerator[Evaluee]:
        """Build the agent and draw the tasks; closes the environment and the engines at the end.

        Raises:
            EngineFault: when a server does not answer, or refuses the key.
        """
        engine = self.run.world.execution.engine
        if isinstance(engine, OwnModel):
            async with server_agent(self.run, engine, deadlines, self.assets) as served:
                check_heldout(self.provenance, self.run, served.tasks)
                yield Evaluee(name=engine.model, runner=served.runner, tasks=served.tasks, seat=first_seat(self.run))
            return
        # Imported here because it imports torch; wrong arguments are reported earlier.
        from bough.train.kept_threads import kept_threads
        from bough.train.runtime import Runtime
        from bough.train.warmup import adapt

        with kept_threads():
            runtime = Runtime(self.run, self.assets, deadlines, trains=False)
            try:
                check_heldout(self.provenance, self.run, runtime.heldout_tasks)
                if self.checkpoint is not None:
                    runtime.load(self.checkpoint)
                await runtime.sync(moved=False)
                policy = type(self.run.world.policy).__name__
                name = policy if self.checkpoint is None else f"step {self.checkpoint.step}"
                seat = runtime.main.role.seat
                yield Evaluee(
                    name=name,
                    runner=runtime.rollouts,
                    tasks=runtime.heldout_tasks,
                    seat=seat,
                    adapt=partial(adapt, runtime),
                )
            finally:
                await runtime.close()


def check_heldout(provenance: Provenance | None, run: Run, heldout: Sequence[Task]) -> None:
    """Refuse held-out tasks that differ from those of the run directory, and report the accepted changes.

    Raises:
        ConfigError: when they differ.
    """
    if provenance is not None:
        provenance.check_tasks(run, {"heldout": heldout})
        for line in provenance.lines:
            to_stderr(line)


@contextmanager
def evaluation_target(
    target: Path | Run,
    *,
    policy: Preset | None = None,
    step: int | None = None,
    changes: Sequence[str] = (),
    accept_changes: bool = False,
) -> Generator[EvaluationTarget]:
    """The target of an evaluation, in the folder in which its run started.

    Args:
        target: A run directory, nothing in which is changed; or a run without weights.
        policy: The policy in place of the run's.
        step: The checkpoint; the newest complete one if None.
        changes: Fields of the run to change first, as on the command line.
        accept_changes: Whether to go on when files or held-out tasks changed since the run was provenance.

    Raises:
        StoreError: when there is no such run or checkpoint.
        ConfigError: when a change is not one of the run's fields, or there is a checkpoint of another policy; when
            files or held-out tasks changed, without `accept_changes`.
    """
    if policy is not None and step is not None:
        raise ConfigError(f"--step {step}: got a checkpoint and another policy; need one of the two")
    with TemporaryDirectory() as folder:
        if isinstance(target, Run):
            run = _with_policy(target, policy, changes)
            check(run)
            run = pinned(run)
            check_files(run)
            yield EvaluationTarget(run=run, assets=Path(folder), checkpoint=None)
            return
        with RunDirectory.open(target).in_its_folder() as directory:
            provenance = Provenance(directory=directory, run=load_run(directory), accept=accept_changes)
            run, assets, checkpoint = _with_policy(provenance.run, policy, changes), directory.policy, None
            has_weights = not isinstance(run.world.execution.engine, OwnModel)
            run = pinned(run) if has_weights else run
            provenance.check_files(run)
            if has_weights:
                if policy is None:
                    checkpoint = checkpoint_of(directory, step)
                else:
                    refuse_own_weights(run)
                    check_files(run)
                    assets = Path(folder)
            yield EvaluationTarget(run=run, assets=assets, checkpoint=checkpoint, provenance=provenance)


def checkpoint_of(directory: RunDirectory, step: int | None) -> Checkpoint:
    """A checkpoint of a run; the newest complete one if `step` is None.

    Raises:
        StoreError: when there is none.
    """
    checkpoints = Checkpoints(directory=directory.checkpoints)
    checkpoint = checkpoints.latest().checkpoint if step is None else checkpoints.at(step)
    if checkpoint is None:
        raise StoreError(f"{directory.path}: got no whole checkpoint; need a run that has saved one")
    return checkpoint


def _with_policy(run: Run, policy: Preset | None, changes: Sequence[str]) -> Run:
    return override(run if policy is None else run.replace(world=policy(run.world)), changes)
