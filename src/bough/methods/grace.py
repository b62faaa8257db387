"""GRACE (arXiv 2510.04506)."""

from bough import credit
from bough.hooks import Contrastive
from bough.objective import Normalizer
from bough.train import Run, World


def grace(world: World, *, cluster: float = 0.2, cross: float = 0.2, temperature: float = 0.1) -> Run:
    """GRACE (arXiv 2510.04506): the policy writes about texts, and is paid for embeddings near the query's.

    Assumes tasks whose data have the texts "query" and, if any, "negative" (see `Contrastive`); where a task has none,
    only the world's rewards count. The advantage is the reward minus the mean of the task, as in Dr. GRPO, whose
    constant divisor it has too. In the world `passages` the environment also pays, which is not in the paper.

    Try: `bough train grace --on passages rewards='[EnvReward(weight=0)]'`
    """
    horizon = world.max_path_tokens
    return world.run(
        hooks=(Contrastive(cluster=cluster, cross=cross, temperature=temperature),),
        credit=credit.dr_grpo(),
        normalizer=Normalizer(by="constant", horizon_tokens=horizon),
    )
