"""TreeRPO on FrozenLake in text: the branches of a fork are compared with each other.

Experimental: written from the formula, the authors' repository is empty. Paper: TreeRPO (arXiv 2506.05183). Assumes an
environment that can step a state twice; FrozenLake's states are values, so branching is free. The paper grows a full
tree of 8 branches at each of 3 depths, 512 paths, forked after so many tokens; here the first two moves are forked
into 3 branches each, 9 paths in all. The learning rate is that of grpo_frozenlake: a model this small learns from
scratch, where papers tune large ones with 1e-6.
"""

from dataclasses import replace

from bough.credit import TreeRpo
from bough.explore import Levels
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tree_rpo_frozenlake",
        explorer=Levels(width=3, depth=2),
        credit=TreeRpo(),
    )
