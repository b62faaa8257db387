"""SeeUPO (arXiv 2602.06554)."""

from bough.credit import dr_grpo
from bough.objective import PpoClip, SeeUpo
from bough.train import Run, World


def seeupo(world: World, *, clip: float = 0.2) -> Run:
    """SeeUPO (arXiv 2602.06554): updates the turns of a path one after the other, the last first.

    Assumes several paths of each task, and that a turn is one decision. Experimental: see `SeeUpo`. An update costs as
    many passes over a batch as its longest path has turns. The advantage is the return minus the task's mean, not
    divided by a standard deviation, which the paper shows to break the guarantee. The paper's experiments normalise it
    over the batch.
    """
    return world.run(credit=dr_grpo(), objective=SeeUpo(clip=PpoClip(ratio="turn", low=clip, high=clip)))
