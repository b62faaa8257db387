"""REINFORCE++-baseline (arXiv 2501.03262)."""

from bough import credit
from bough.objective import Kl
from bough.train import Run, World


def reinforce_pp_baseline(world: World, *, kl: float = 0.04) -> Run:
    """REINFORCE++-baseline (arXiv 2501.03262): return minus the task's mean, then whitened over the batch.

    Assumes several paths of each task. The KL in the loss is estimated by k2, whose gradient is exact for samples of
    the policy; its coefficient is GRPO's (2402.03300). In released code (verl) a path alone in its group keeps its
    return, and groups of equal returns get what the whitening gives them; both get 0 here.
    """
    return world.run(credit=credit.reinforce_pp_baseline(), regularizers=(Kl(coefficient=kl, estimator="k2"),))
