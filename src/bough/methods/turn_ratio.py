"""The turn-level ratio of ST-PPO (arXiv 2511.20718)."""

from bough.objective import PpoClip
from bough.train import Run, World


def turn_ratio(world: World) -> Run:
    """The turn-level ratio of ST-PPO (arXiv 2511.20718): all tokens of a turn are clipped together.

    Assumes that a turn is one decision. Experimental: the formula is known from the abstract and reviews, and no code
    was found. The ratio is exp of the mean log ratio over a turn's tokens, and the advantage is GRPO's. `st_ppo` has
    the paper's critic, and its division of the gradient by the norm of a clipping bias.
    """
    return world.run(objective=PpoClip(ratio="turn"))
