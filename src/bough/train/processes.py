"""The other processes of a run: environment workers and ranks."""

from collections.abc import Callable

from bough.env import EnvHost, InProcessHost, Workers
from bough.env.hosts.workers import to_stderr
from bough.launch import Torchrun
from bough.learner.leading_rank import LeadingRank
from bough.learner.rank_processes import LaunchedRanks
from bough.learner.torchrun_ranks import TorchrunRanks
from bough.train.run import Run


def leading_rank(run: Run, notify: Callable[[str], None]) -> LeadingRank:
    """Rank 0 of a run with several ranks: torchrun has started the others, or they start now."""
    settings, torchrun = run.world.execution, Torchrun.found()
    return LeadingRank(
        TorchrunRanks(torchrun)
        if torchrun
        else LaunchedRanks(settings.ranks, settings.rank_placement, settings.min_ranks),
        update_s=settings.rank_deadline_s,
        notify=notify,
        shards=settings.shard,
    )


def make_host(run: Run, notify: Callable[[str], None] = to_stderr) -> EnvHost:
    """The host of a run's environment: in this process, or in `execution.workers` processes."""
    env, settings = run.world.env, run.world.execution
    if not settings.workers:
        return InProcessHost(env=env)
    return Workers(
        env=env,
        count=settings.workers,
        deadline_s=settings.worker_deadline_s,
        placement=settings.worker_placement,
        notify=notify,
    )
