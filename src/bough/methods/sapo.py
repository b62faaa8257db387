"""SAPO (arXiv 2511.20347)."""

from bough.objective import Sapo
from bough.train import Run, World


def sapo(world: World, *, gaining: float = 1.0, losing: float = 1.05) -> Run:
    """SAPO (arXiv 2511.20347): a sigmoid of the ratio fades the gradient where PPO cuts it off.

    Assumes several paths of each task. Both temperatures, for positive and for negative advantages, are the paper's.
    """
    return world.run(objective=Sapo(gaining=gaining, losing=losing))
