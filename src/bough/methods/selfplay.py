"""SPPO, self-play preferences (arXiv 2405.00675)."""

from bough.curate import NonZeroAdvantage
from bough.objective import SelfPlay
from bough.train import Run, World


def selfplay(world: World) -> Run:
    """Self-play preferences (SPPO, arXiv 2405.00675): log-probability ratios regress on win rates in the group.

    Assumes several paths of each task. Returns decide who wins; the paper has a preference model. Each batch is an
    iteration, and eta is the paper's 1000, with which an iteration is a gradient step on win rates.
    """
    return world.run(objective=SelfPlay(), regularizers=(), filters=(NonZeroAdvantage(),))
