"""Runs whose ranks torchrun started."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from bough.config.config import ConfigError
from bough.config.override import override
from bough.launch import ThisMachine, Torchrun
from bough.train.run import Run

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def under_torchrun(command: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A command that trains: under torchrun, rank 0 executes it.

    In the other ranks it does not return: they follow rank 0, and end with it.
    """

    @functools.wraps(command)
    def execute(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        torchrun = Torchrun.found()
        if torchrun is None:
            return command(*args, **kwargs)
        # Imported here because it imports torch.
        from bough.learner.torchrun_ranks import follow_torchrun, lead_torchrun

        if torchrun.rank:
            follow_torchrun(torchrun)
            sys.exit()
        with lead_torchrun(torchrun):
            return command(*args, **kwargs)

    return execute


def with_torchrun_ranks(run: Run) -> Run:
    """The run with as many ranks as torchrun started, if it did.

    Raises:
        ConfigError: when the run has another number of ranks, or starts them elsewhere.
    """
    torchrun, execution = Torchrun.found(), run.world.execution
    if torchrun is None:
        return run
    if execution.ranks not in (1, torchrun.world_size):
        raise ConfigError(
            f"ranks: got {execution.ranks} with {torchrun.world_size} processes of torchrun; need "
            f"ranks={torchrun.world_size}, or as many processes: change ranks, or torchrun's --nproc-per-node and "
            "--nnodes"
        )
    if execution.rank_placement != ThisMachine():
        raise ConfigError(
            f"rank_placement: got {execution.rank_placement} under torchrun, which has started the ranks; need "
            "rank_placement=ThisMachine(), or a run without torchrun"
        )
    if execution.min_ranks is not None:
        raise ConfigError(
            f"min_ranks: got {execution.min_ranks} under torchrun, which starts the ranks; need None; set "
            "`torchrun --nnodes=MIN:MAX --max-restarts=3`, and resume the run"
        )
    return override(run, [f"ranks={torchrun.world_size}"])


def with_ranks_of_torchrun(stored: Run) -> Run:
    """A stored run, under torchrun without its number of ranks: torchrun may have other machines than before."""
    return stored if Torchrun.found() is None else override(stored, ["min_ranks=none", "ranks=1"])


def resume_command(path: Path) -> str:
    """The command that continues a run, started as this process was.

    Args:
        path: The run's directory.
    """
    here = Path.cwd()
    command = f"bough resume {path.relative_to(here) if path.is_relative_to(here) else path}"
    return f"torchrun --max-restarts=3 ... -m {command}" if Torchrun.found() else command
