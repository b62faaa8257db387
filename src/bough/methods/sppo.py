"""sPPO (Trinity-RFT, arXiv 2505.17826)."""

from bough.objective import Sppo
from bough.train import Run, World


def sppo(world: World, *, epsilon: float = 0.3) -> Run:
    """SPPO (a loss of Trinity-RFT, arXiv 2505.17826): the log ratio in place of the ratio, inside a range only.

    Assumes several paths of each task. The range from 1 / 1.3 to 1.3 is the release's. No paper that derives it was
    found.
    """
    return world.run(objective=Sppo(epsilon=epsilon))
