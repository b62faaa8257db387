"""Dynamic-TreeRPO (arXiv 2509.23352)."""

from bough.credit import TreeRpo
from bough.explore import FullTree
from bough.objective import Imitation, PpoClip, Sum
from bough.train import Run, World


def dynamic_tree_rpo(world: World, *, depth: int = 3, heat: float = 0.5, trunk: int = 2, imitation: float = 0.1) -> Run:
    """Dynamic-TreeRPO (arXiv 2509.23352): binary trees in a window of turns, hotter with depth, and imitation.

    Assumes an environment that can step a state twice. Experimental: written from the abstract and reviews. The paper
    trains a flow model of images, and a level of its tree is a step of denoising; here the medium is text, a level is a
    turn, and the noise of a level is the temperature of the sampling (`FullTree.heat`). The window of `depth` turns
    begins after up to `trunk` turns; the paper's moves with the training step. Branches of a fork are compared, as in
    `tree_rpo`. The supervised term imitates the better branch of each fork, weighted by its advantage, which is the
    progress that it makes, and by `imitation`. The paper's bounds of the clip that depend on the reward are left out.
    """
    return world.run(
        explorer=FullTree(width=2, depth=depth, heat=heat, trunk=trunk),
        credit=TreeRpo(),
        objective=Sum(terms=(PpoClip(), Imitation(coefficient=imitation))),
    )
