"""Single-stream PO (arXiv 2509.13232)."""

from bough.credit import SingleStream
from bough.explore import Chains
from bough.hooks import Tracker
from bough.objective import PpoClip
from bough.train import Run, World


def single_stream(world: World) -> Run:
    """Single-stream PO (arXiv 2509.13232): one path of each task, against a running estimate of the task's success.

    Assumes returns from 0 to 1, and tasks that come again. The tracker's settings (a memory of 8 paths, 0.875 to 0.96
    kept, half forgotten at 0.06 nats) and the upper clip are the paper's. A batch has 8 times the world's tasks. The
    released code samples every task before training; here a task's first visit begins its estimate.
    """
    return world.run(
        explorer=Chains(n=1),
        hooks=(Tracker(),),
        credit=SingleStream(),
        objective=PpoClip(high=0.28),
        batch_tasks=8 * world.schedule.batch_tasks,
    )
