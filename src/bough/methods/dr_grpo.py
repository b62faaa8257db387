"""Dr. GRPO (arXiv 2503.20783)."""

from bough import credit
from bough.objective import Normalizer
from bough.train import Run, World


def dr_grpo(world: World) -> Run:
    """Dr. GRPO (arXiv 2503.20783): GRPO without division by the standard deviation and by the length.

    Assumes several paths of each task. The loss sums over a path and divides by a constant, the most tokens of a path
    in the world; the paper takes the limit of the length. The paper has no divergence: set `regularizers=[]` where the
    world has one. Much released code has only one half of the change.
    """
    horizon = world.max_path_tokens
    return world.run(credit=credit.dr_grpo(), normalizer=Normalizer(by="constant", horizon_tokens=horizon))
