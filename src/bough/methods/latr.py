"""LATR (arXiv 2510.24302)."""

from bough.explore import Latr
from bough.methods.hiper import with_subgoals
from bough.train import Run, World


def latr(world: World, *, paths: int = 8, windows: tuple[int, ...] = (4, 8, 12), every: int = 3) -> Run:
    """LATR (arXiv 2510.24302): paths branch where two tokens are nearly tied, and near-equal branches are pruned.

    Assumes an environment that can step a state twice, and an engine that reports alternative tokens. Answers have a
    subgoal of up to `every` actions before the action, so that they are long enough to branch inside. Credit and loss
    are GRPO's. The threshold of a tie and 8 paths are the paper's for Countdown; it compares branches after 20 to 50
    tokens. The released code takes the most probable token where it does not branch; here that token is sampled, and
    forced tokens get no loss.
    """
    return with_subgoals(world, every).run(explorer=Latr(paths=paths, windows=windows))
