"""RLOO (arXiv 2402.14740)."""

from bough import credit
from bough.train import Run, World


def rloo(world: World) -> Run:
    """RLOO (arXiv 2402.14740): each return minus the mean of the group's others, an unbiased baseline.

    Assumes several paths of each task. The paper takes a whole answer as one action, with the divergence in the reward
    and without a clip; here each token has a clipped ratio, and the divergence is the world's. In released code (verl,
    TRL) a path alone in its group gets its return; here it gets 0.
    """
    return world.run(credit=credit.rloo())
