"""DialTree-RPO (arXiv 2510.02286)."""

from bough.explore import FormatScore, FullTree
from bough.train import Run, World


def dialtree(world: World, *, width: int = 3, depth: int = 4, keep: int = 8) -> Run:
    """DialTree-RPO (arXiv 2510.02286): a tree that branches at every turn, pruned by the form of the actions.

    Assumes an environment that can step a state twice. Experimental: written from the abstract and a summary. The
    leaves of a task are one group, as in GRPO. The paper shields tokens of the answer's form from negative advantages
    by a rule that is not public; that is left out.
    """
    return world.run(explorer=FullTree(width=width, depth=depth, keep=keep, quality=FormatScore()))
