"""TreePO (arXiv 2508.17445)."""

from bough.credit import TreePo
from bough.explore import Segments
from bough.methods.hiper import with_subgoals
from bough.objective import PpoClip
from bough.train import Run, World


def treepo(world: World, *, width: int = 8, tokens: int = 8, every: int = 3) -> Run:
    """TreePO (arXiv 2508.17445): paths branch at every segment, and are compared at each place that they share.

    Assumes an environment that can step a state twice. Answers have a subgoal of up to `every` actions before the
    action, so that they are long enough to branch inside. Doubling of paths up to the width of a group, fallback from
    ended paths, the mean over places and the whitening of the batch are those of the released script. Its segments have
    512 tokens of one long answer. The clip of 0.2 and 0.28 is the paper's.
    """
    return with_subgoals(world, every).run(
        explorer=Segments(width=width, tokens=tokens), credit=TreePo(), objective=PpoClip(high=0.28)
    )
