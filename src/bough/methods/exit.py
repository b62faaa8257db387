"""ExIt (arXiv 2509.04575)."""

from bough.hooks import ExIt
from bough.train import Run, World


def exit(world: World) -> Run:  # noqa: A001 - the name of the paper
    """ExIt (arXiv 2509.04575): half of the tasks begin in the middle of earlier paths whose groups disagreed.

    Assumes an environment in which the same actions lead to the same state. Experimental: written from the abstract and
    summaries. A path of a group with unequal returns is cut at a random turn and kept; its priority is the variance of
    the returns. The paper revises whole answers and adds a prompt for different ones, which turns do not have.
    """
    return world.run(hooks=(ExIt(),))
