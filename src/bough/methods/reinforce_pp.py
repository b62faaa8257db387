"""REINFORCE++ (arXiv 2501.03262)."""

from bough.credit import ReinforcePlusPlus
from bough.explore import Chains
from bough.train import Run, World


def reinforce_pp(world: World, *, kl: float = 0.01) -> Run:
    """REINFORCE++ (arXiv 2501.03262): returns to go with a KL in the reward, whitened over the batch; one path a task.

    Assumes tasks alike enough to share the batch's mean as a baseline. The KL is in the reward, token by token, with
    the coefficient of the authors' OpenRLHF, and not in the loss. A batch has 8 times the world's tasks. Released code
    whitens over tokens, so that long paths weigh more.
    """
    return world.run(
        explorer=Chains(n=1),
        credit=ReinforcePlusPlus(kl=kl),
        regularizers=(),
        batch_tasks=8 * world.schedule.batch_tasks,
    )
