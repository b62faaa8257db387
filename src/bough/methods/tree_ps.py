"""TreePS (arXiv 2601.06922)."""

from bough.credit import TreePs
from bough.explore import FullTree
from bough.train import Run, World


def tree_ps(world: World, *, width: int = 3, depth: int = 6, keep: int = 12) -> Run:
    """TreePS (arXiv 2601.06922): a step gets the rise of the mean outcome of its continuations.

    Assumes an environment that can step a state twice. Experimental: the abstract and summaries of the paper were read,
    and no code was found. The tree grows level by level to `depth`, with at most `keep` places a level; equal actions
    of a place are merged, as the paper keeps siblings diverse. Turns without a fork behind them get no credit.
    """
    return world.run(explorer=FullTree(width=width, depth=depth, keep=keep, merge=True), credit=TreePs())
