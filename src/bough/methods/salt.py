"""SALT (arXiv 2510.20022)."""

from bough.credit import Salt
from bough.train import Run, World


def salt(world: World) -> Run:
    """SALT (arXiv 2510.20022): a step that paths share gets the mean of their advantages.

    Assumes states with keys, and rewards of the outcome alone. Experimental: the abstract and reviews of the paper were
    read, and no code was found. A step is shared where state, action and next state are equal; advantages of paths are
    GRPO's.
    """
    return world.run(credit=Salt())
