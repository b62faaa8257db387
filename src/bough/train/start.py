"""Starting and resuming runs: from a `Run` or a directory to a trained policy and a report."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from bough.env.workers import mib
from bough.explore import Waits
from bough.store import RunDirectory, describe, digest_tasks
from bough.train.check import check
from bough.train.config import ConfigError, dump, load
from bough.train.finish import finish
from bough.train.journal import Journal
from bough.train.loop import train
from bough.train.run import Run
from bough.train.watchdog import Watchdog
from bough.train.workshop import Workshop
from bough.view import Live

LARGE_CONFIG_BYTES = 10 * 2**20


def start(run: Run, out: Path = Path("runs"), *, terminal: bool | None = None) -> RunDirectory:
    """Train a run from the beginning.

    Args:
        run: What to train.
        out: The folder in which the run's directory, named `run.name`, is made.
        terminal: Whether to draw a live display; None finds out.

    Returns:
        The run's directory: metrics, trees, checkpoints, the trained policy, report.html.

    Raises:
        StoreError: when the directory is there already, or the disk is full.
        ConfigError: when the run's pieces do not fit together.
        DeadRun: when the run cannot learn.
    """
    directory = RunDirectory.create(out / run.name)
    try:
        directory.write_config(dump(run))
        return _go(run, directory, terminal)
    except Exception:
        if not directory.metrics.is_file():
            # Nothing was learned yet, so there is nothing to keep, and the name is free for the next attempt.
            shutil.rmtree(directory.path)
        raise


def resume(path: Path, *, terminal: bool | None = None) -> RunDirectory:
    """Go on with a run that was stopped, from its newest whole checkpoint, as if it had never stopped.

    It goes on in the working directory in which it began.

    Raises:
        StoreError: when there is no run in `path`.
        ConfigError: when the run's config.json names pieces or fields that are no more.
    """
    with RunDirectory.open(path).in_its_folder() as directory:
        return _go(load_run(directory), directory, terminal)


def load_run(directory: RunDirectory) -> Run:
    """The run that a directory was made by.

    Raises:
        ConfigError: when config.json is not a run's.
    """
    run = load(directory.read_config())
    if not isinstance(run, Run):
        raise ConfigError(f"{directory.config}: got {type(run).__name__}; need the configuration of a Run")
    return run


def _go(run: Run, directory: RunDirectory, terminal: bool | None) -> RunDirectory:
    check(run)
    waits = Waits()
    with (
        Live(run.name, run.warmup_steps + run.steps, terminal=terminal) as live,
        Watchdog(waits, grace_s=run.guards.stuck_s),
    ):
        if (size := directory.config.stat().st_size) >= LARGE_CONFIG_BYTES:
            live.say(
                f"config.json has {mib(size)}: it holds all fields of all pieces, and so does report.html. "
                "Keep large data in a file that a field names"
            )
        live.say("building the model, the engine and the environment")
        shop = Workshop(run, directory.policy, waits, live.say)
        if shop.budget is not None:
            live.say(shop.budget.line)
        if not directory.manifest.is_file():
            data = {"train": digest_tasks(shop.train_tasks), "heldout": digest_tasks(shop.heldout_tasks)}
            environment = getattr(run.env, "data_hash", None)
            directory.write_manifest(describe(data | ({"environment": environment} if environment else {})))
        journal = Journal(run, directory, live)
        try:
            asyncio.run(_run(shop, journal))
            journal.save_policy(shop.policy)
        except BaseException as error:
            # The error is what a person has to hear of; that its report could not be written is not.
            with suppress(Exception):
                finish(run, directory, f"The run stopped early: {str(error) or type(error).__name__}")
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(f"go on with `bough resume {directory.path}`") from None
            raise
        finish(run, directory)
    return directory


async def _run(shop: Workshop, journal: Journal) -> None:
    try:
        await train(shop, journal)
    finally:
        await shop.close()
