"""W-DPO (StepORLM, arXiv 2509.22558)."""

from bough.curate import NonZeroAdvantage
from bough.objective import WDpo
from bough.train import Run, World


def w_dpo(world: World) -> Run:
    """W-DPO (StepORLM, arXiv 2509.22558): pairs of paths, weighted by how far their advantages differ.

    Assumes several paths of each task with different returns. The weights are differences of advantages, so that tasks
    solved rarely or nearly always weigh most; with a reference. `step_orlm` has the paper's weights and loss. Beta is
    0.1.
    """
    return world.run(objective=WDpo(), regularizers=(), filters=(NonZeroAdvantage(),))
