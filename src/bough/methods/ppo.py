"""PPO (arXiv 1707.06347)."""

from bough.credit import Gae
from bough.critics import ValueHead
from bough.explore import Chains
from bough.objective import PpoClip, Sum, ValueClip
from bough.train import Run, World


def ppo(world: World) -> Run:
    """PPO with GAE (arXiv 1707.06347, 1506.02438): a value head's estimates of each token, one path of each task.

    Assumes nothing about groups: a batch has 8 times the world's tasks, hence as many paths as with groups of 8.
    Discount and lambda are 1, and the value loss is clipped at 0.5 with the coefficient 0.5, as in verl. There the
    critic is a model of its own with ten times the policy's learning rate; here it is a linear head with twice that,
    and its loss trains the policy's layers too. In verl whitened advantages of observations are not 0; here they are.
    """
    return world.run(
        explorer=Chains(n=1),
        credit=Gae(),
        critic=ValueHead(),
        objective=Sum(terms=(PpoClip(), ValueClip())),
        batch_tasks=8 * world.schedule.batch_tasks,
    )
