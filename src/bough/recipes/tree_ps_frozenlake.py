"""TreePS on FrozenLake in text: a move is worth the rise in the mean outcome of what goes on from it.

Experimental: the abstract and summaries of the paper were read. Paper: TreePS-RAG (arXiv 2601.06922). Assumes an
environment that can step a state twice; FrozenLake's states are values, so branching is free. The tree grows level by
level, and a move that was made before in the same place is not made again, as the paper keeps siblings diverse; 12
places live on at each of 6 levels. Moves after which nothing forks get no credit. The learning rate is that of
grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6. No code was found.
"""

from dataclasses import replace

from bough.credit import TreePs
from bough.explore import Levels
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tree_ps_frozenlake",
        explorer=Levels(width=3, depth=6, keep=12, merge=True),
        credit=TreePs(),
    )
