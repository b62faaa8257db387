"""TreeRPO (arXiv 2506.05183)."""

from bough.credit import TreeRpo
from bough.explore import FullTree
from bough.train import Run, World


def tree_rpo(world: World, *, width: int = 3, depth: int = 2) -> Run:
    """TreeRPO (arXiv 2506.05183): compares the branches of a fork with each other, in a full tree.

    Assumes an environment that can step a state twice. Experimental: written from the formula, the authors' repository
    is empty. The paper grows 8 branches at each of 3 depths, 512 paths, forked by tokens; the defaults fork the first
    two turns into 3 branches, 9 paths.
    """
    return world.run(explorer=FullTree(width=width, depth=depth), credit=TreeRpo())
