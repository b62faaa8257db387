"""TreeRL on FrozenLake in text: a stretch is worth its value over the beginning's and over the last fork's.

Paper: TreeRL (arXiv 2506.11902). Assumes an environment that can step a state twice; FrozenLake's states are values, so
branching is free. The paper forks at the tokens that were least likely, 30 paths in a tree of which 16 are trained on;
here random turns are forked, 8 paths in all. The learning rate is that of grpo_frozenlake: a model this small learns
from scratch, where papers tune large ones with 1e-6. The released code divides two values by different square roots
before it subtracts them (`TreeRl(as_released=True)`).
"""

from dataclasses import replace

from bough.credit import TreeRl
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="treerl_frozenlake",
        explorer=Forks(chains=2, draws=3),
        credit=TreeRl(),
    )
