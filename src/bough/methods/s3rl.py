"""S3RL (arXiv 2403.00673)."""

from bough.hooks import Snapshots
from bough.train import Run, World


def s3rl(world: World, *, episodes: int = 50) -> Run:
    """S3RL (arXiv 2403.00673): in the first tenth of a run, tasks begin on the oracle's way to the goal.

    Assumes an oracle, and an environment in which the same actions lead to the same state. The tenth and 6 clusters are
    the paper's, on robots with TD3, SAC and PPO. Its snapshots are of 10 episodes of one task, clustered by a critic's
    value; here of `episodes` tasks, by the turns to go. The paper gains little for PPO.
    """
    return world.run(hooks=(Snapshots(episodes=episodes),))
