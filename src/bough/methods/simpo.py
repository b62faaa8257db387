"""SimPO (arXiv 2405.14734)."""

from dataclasses import replace

from bough.curate import NonZeroAdvantage
from bough.objective import Pairs, SimPo
from bough.train import Run, World


def simpo(world: World) -> Run:
    """SimPO (arXiv 2405.14734): prefers better paths by mean log-probability, with a margin; no reference.

    Assumes several paths of each task with different returns. Beta 2.5 and gamma 0.5 are those of iTool (2501.09766).
    Without a reference only the margin ends the gradient of a pair, so the learning rate is a quarter of the world's.
    """
    return world.run(
        objective=SimPo(pairs=Pairs(choice="all")),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        optimizer=replace(world.optimizer, learning_rate=world.optimizer.learning_rate / 4),
    )
