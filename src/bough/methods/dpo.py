"""DPO (arXiv 2305.18290)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Dpo, Pairs
from bough.train import Run, World


def dpo(world: World) -> Run:
    """DPO (arXiv 2305.18290): each better path of a task is preferred to each worse one.

    Assumes several paths of each task with different returns; groups of equal returns are dropped. The paper's pairs
    are fixed; here the policy samples new ones in each step, and the reference is the policy after the warm-up. Beta
    0.1 is the paper's. Trinity-RFT merges the pairs of a batch into one.
    """
    return world.run(objective=Dpo(pairs=Pairs(choice="all")), regularizers=(), filters=(NonZeroAdvantage(),))
