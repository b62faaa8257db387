"""Agent-RLVR (arXiv 2506.11425)."""

from dataclasses import replace

from bough.curate import NonZeroAdvantage
from bough.explore import Guided
from bough.objective import Dpo, Pairs
from bough.train import Demonstrations, Run, World


def guided(world: World, *, n: int = 8, again: int = 4) -> Run:
    """Agent-RLVR (arXiv 2506.11425): where all attempts fail, attempts with hints follow, and are preferred by DPO.

    Assumes several attempts at each task, and an oracle: the hint is its next action. Experimental: written from the
    abstract and a summary. The loss sees the path without the hint. A policy that has never read hints gains little
    from them at first. A batch is one optimizer step, so that pairs stay together, at 0.4 of the world's learning rate.
    """
    return world.run(
        explorer=Guided(n=n, again=again),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        objective=Dpo(pairs=Pairs(choice="best_worst")),
        optimizer=replace(world.optimizer, learning_rate=0.4 * world.optimizer.learning_rate, minibatches=1),
        demonstrations=Demonstrations(from_trees=True),
    )
