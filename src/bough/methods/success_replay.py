"""Success replay (ARPO, arXiv 2505.16282)."""

from dataclasses import replace

from bough.hooks import SuccessReplay
from bough.objective import PpoClip
from bough.train import Run, World


def success_replay(world: World, *, pool_batches: int = 8) -> Run:
    """GRPO with success replay (ARPO, arXiv 2505.16282): an earlier success joins each group that only fails.

    Assumes tasks that come again: the pool has `pool_batches` batches, and at least the tasks of the warm-up. Eight
    successes a task, a spread below 0.05, a mean below 0.2 and clips of 0.2 and 0.3 are the authors'. Their code
    recomputes the log-probabilities of replayed paths under the present policy; here they are those of the sampling
    policy.
    """
    pool = max(pool_batches * world.schedule.batch_tasks, world.warmup.demonstrations)
    return world.run(
        hooks=(SuccessReplay(),),
        objective=PpoClip(high=0.3),
        tasks=replace(world.tasks, count=min(world.tasks.count, pool)),
    )
