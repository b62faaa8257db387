"""Starting and resuming runs: from a `Run` or a directory to a trained policy and a report."""

import os
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bough.config.config import ConfigError, dump, load
from bough.config.override import full_path, override
from bough.env.hosts.workers import mib
from bough.launch import kept_logs
from bough.needs import CALLS, gives_of
from bough.rollout import Deadlines
from bough.store import Checkpoints, Copies, Endpoint, RunDirectory, RunStatus, owned
from bough.store.heldout import heldout_file, read_heldout
from bough.train.check import check, check_files, check_trained_sampling
from bough.train.event_loop import run_coroutine
from bough.train.health import NoLearningSignal
from bough.train.interrupt import interrupted_by, interruptible
from bough.train.pinned import hub_repos, pinned
from bough.train.provenance import Provenance
from bough.train.run import Run
from bough.train.torchrun import resume_command, under_torchrun, with_ranks_of_torchrun, with_torchrun_ranks
from bough.train.unused import refuse_unused_models, unread_columns
from bough.train.watchdog import Watchdog
from bough.units import MIB
from bough.usercode import origin
from bough.usercode.guards import contained, exits_raise
from bough.view import Live

if TYPE_CHECKING:
    from bough.train.recorder import RunRecorder
    from bough.train.runtime import Runtime

MAY_CHANGE = (
    "steps",
    "health",
    "checkpointing",
    "workers",
    "worker_deadline_s",
    "worker_placement",
    "ranks",
    "min_ranks",
    "rank_placement",
    "shard",
    "rank_deadline_s",
    "metrics_port",
    "limits.env_deadline_s",
    "limits.engine_deadline_s",
)
"""The fields of a run that `resume` may change, each with its nested fields."""

LARGE_CONFIG_BYTES = 10 * MIB


@under_torchrun
def start(run: Run, out: Path = Path("runs"), *, terminal: bool | None = None) -> RunDirectory:
    """Train a run from the beginning.

    In the processes that torchrun starts beside rank 0 it does not return: they follow rank 0, and end with it.

    Args:
        run: The run.
        out: The folder in which the run's directory, named `run.name`, is made.
        terminal: Whether to draw a live display; None detects a terminal.

    Returns:
        The run's directory: metrics, trees, checkpoints, the trained policy, report.html.

    Raises:
        StoreError: when the directory exists already, or the disk is full.
        ConfigError: when the run's pieces do not fit together.
        NoLearningSignal: when the run cannot learn.
    """
    run = with_torchrun_ranks(run)
    refuse_unused_models(run)
    directory, process = RunDirectory.create(out / run.name), os.getpid()
    # Code of the user may change the working folder.
    absolute = RunDirectory(path=directory.path.absolute())
    with owned(absolute.lock):
        try:
            absolute.write_config(dump(run))
            _go(Provenance(directory=absolute, run=run, accept=False), terminal, list(unread_columns(run)))
        except KeyboardInterrupt:
            # `bough resume` begins with the first step.
            raise
        except BaseException:
            # The child of a fork in the user's code must not remove its parent's run.
            if os.getpid() == process and not absolute.metrics.is_file():
                # The run has no step yet, so its directory is removed and the name is free for the next attempt.
                absolute.remove()
            raise
    return directory


@under_torchrun
def resume(
    path: Path, changes: Sequence[str] = (), *, accept_changes: bool = False, terminal: bool | None = None
) -> RunDirectory:
    """Continue a stopped run from its newest complete checkpoint; equals the uninterrupted run.

    A run without a checkpoint starts at its first step. A finished run is not built; it continues when `changes` add
    steps, and schedules then use the new number of steps. The working directory is that in which the run started.
    Under torchrun it returns in rank 0 only, as `start`.

    Args:
        path: The run's directory.
        changes: Fields to change, as in "steps=200"; they are written to config.json. See `MAY_CHANGE`.
        accept_changes: Whether to go on when files of pieces, data or tasks changed since the run was made;
            manifest.json then has what changed.
        terminal: Whether to draw a live display; None detects a terminal.

    Raises:
        StoreError: when there is no run in `path`, another process writes there, config.json was edited, a held-out
            result or all checkpoints are damaged.
        ConfigError: when config.json names pieces or fields that do not exist, a change is not in `MAY_CHANGE`, or
            `steps` is less than the steps done; when files, data or tasks changed, without `accept_changes`.
        NoLearningSignal: when the run cannot learn.
    """
    with RunDirectory.open(path).in_its_folder() as directory, owned(directory.lock):
        stored = load_run(directory)
        run = with_torchrun_ranks(_changed(with_ranks_of_torchrun(stored), changes))
        lines = [f"changed: {change}" for change in changes]
        newest, steps = Checkpoints(directory=directory.checkpoints).latest(), run.world.schedule.steps
        done = newest.checkpoint.step - run.warmup_steps if newest.checkpoint else -1
        if changes and steps < done:
            raise ConfigError(f"steps: got steps={steps}; the run has {done} done; need {done} or more")
        if newest.checkpoint is None and not newest.skipped:
            lines.append("the run has no checkpoint yet, and begins at its first step")
        check(run)
        read_heldout(directory)  # the report reads them after the last step
        if run != stored:
            directory.write_config(dump(run))
        if done >= steps and _is_complete(run, directory):
            with Live(run.name, steps, epochs=run.warmup_steps, terminal=terminal) as live:
                for line in lines:
                    live.say(line)
                live.say("already finished; add steps=N to continue")
            return directory
        absolute = RunDirectory(path=directory.path.absolute())
        absolute.make_folders()
        _go(Provenance(directory=absolute, run=run, accept=accept_changes), terminal, lines)
        return directory


def _is_complete(run: Run, directory: RunDirectory) -> bool:
    """Whether a run has the files that follow its last checkpoint: the held-out result, the policy, the report."""
    last = heldout_file(directory, run.warmup_steps + run.world.schedule.steps)
    files = (directory.final, directory.report, *((last,) if run.world.evaluation.every else ()))
    return all(path.exists() for path in files)


def _changed(run: Run, changes: Sequence[str]) -> Run:
    for change in changes:
        field = change.partition("=")[0]
        path = full_path(run, field)
        if not any(path[: len(each)] == each for each in (full_path(run, each) for each in MAY_CHANGE)):
            raise ConfigError(
                f"{field}: got a change of a field that a run keeps; need one of {', '.join(MAY_CHANGE)}. Everything "
                "else makes another run: `bough train` it under a name of its own"
            )
    return override(run, changes)


def load_run(directory: RunDirectory) -> Run:
    """The run of a directory.

    Raises:
        ConfigError: when config.json is not a run's.
    """
    run = load(directory.read_config())
    if not isinstance(run, Run):
        raise ConfigError(f"{directory.config}: got {type(run).__name__}; need the configuration of a Run")
    return run


def _go(made: Provenance, terminal: bool | None, lines: Sequence[str]) -> None:
    with interruptible(made.directory.path), exits_raise():
        _go_on(made, terminal, lines)


def _go_on(made: Provenance, terminal: bool | None, lines: Sequence[str]) -> None:
    run, directory = made.run, made.directory
    check(run)
    check_trained_sampling(run)
    if (run := pinned(run)) != made.run:
        made = replace(made, run=run)
        directory.write_config(dump(run))
    check_files(run)
    made.check_files(run)
    # Imported here because it imports torch; wrong settings are reported earlier.
    from bough.train.kept_threads import kept_threads
    from bough.train.recorder import RunRecorder

    deadlines, port, url = Deadlines(), run.world.execution.metrics_port, run.checkpointing.copy_to
    copies = Copies(url, directory.path) if url else None
    with (
        Endpoint(run.name, port) if port else nullcontext() as endpoint,
        Live(run.name, run.world.schedule.steps, epochs=run.warmup_steps, terminal=terminal) as live,
        Watchdog(deadlines, grace_s=run.health.stuck_s),
        kept_logs(directory.logs),
    ):
        # Several places may name one model.
        for line in dict.fromkeys([*lines, *(f"{each.name}: revision {each.revision}" for each in hub_repos(run))]):
            live.say(line)
        if (size := directory.config.stat().st_size) >= LARGE_CONFIG_BYTES:
            live.say(
                f"config.json has {mib(size)}: it holds all fields of all pieces. "
                "Keep large data in a file that a field names"
            )
        live.say("building the model, the engine and the environment")
        with kept_threads():
            recorder = RunRecorder(run, directory, live, endpoint, copies)
            _train(made, live, deadlines, recorder)


def _train(made: Provenance, live: Live, deadlines: Deadlines, recorder: "RunRecorder") -> None:
    from bough.train.run_report import write_run_report
    from bough.train.runtime import Runtime

    run, directory = made.run, made.directory
    runtime = Runtime(run, directory.policy, deadlines, live.say)
    runtime.notices.report = recorder.alarm
    for each in runtime.trained:
        if how := each.policy.how_it_runs:
            live.say(how)
        if each.budget is not None:
            live.say(each.budget.line)
        if CALLS in gives_of(run.world.parser):
            live.say(f"calls of tools are in {each.policy.renderer.call_format}")
        if marks := each.policy.renderer.plain_marks:
            live.say(
                f"the chat template marks messages by plain text ({', '.join(marks)}), which texts of others can "
                "imitate; for these take a model whose tokenizer has tokens for its marks"
            )
    made.check_tasks(run, {"train": runtime.train_tasks, "heldout": runtime.heldout_tasks})
    for line in made.record(runtime.ranks.machines):
        live.say(line)
    RunStatus(state="training").write(directory.path)
    try:
        ended = run_coroutine(_run(runtime, recorder))
        recorder.save_policies(runtime.trained)
    except BaseException as error:
        # The error is raised; a failure to write its report is ignored.
        with suppress(Exception):
            status_after(error).write(directory.path)
            write_run_report(directory)
        steps = Checkpoints(directory=directory.checkpoints).steps()
        if steps and not isinstance(error, KeyboardInterrupt):
            live.say(
                f"stopped by an error; `{resume_command(directory.path)}` goes on after {run.named_step(steps[-1])}"
            )
        raise
    RunStatus(state="done", why=ended).write(directory.path)
    write_run_report(directory)
    recorder.copy_rest()
    if ended:
        live.say(ended)


def status_after(error: BaseException) -> RunStatus:
    """The status of a run that an error ended: stopped by a person or a health check, or crashed."""
    if isinstance(error, KeyboardInterrupt):
        return RunStatus(state="stopped", why=f"by {interrupted_by()}")
    if isinstance(error, NoLearningSignal):
        return RunStatus(state="stopped", why=f"by a health check: {error}")
    text = origin.describe(error) if origin.place(error) else str(error) or type(error).__name__
    return RunStatus(state="crashed", why=text)


async def _run(runtime: "Runtime", recorder: "RunRecorder") -> str:
    from bough.train.dry_pass import dry_pass
    from bough.train.loop import train

    try:
        with contained("a piece of the run"):
            await runtime.check_servers()
            await dry_pass(runtime)
            return await train(runtime, recorder)
    finally:
        await runtime.close()
