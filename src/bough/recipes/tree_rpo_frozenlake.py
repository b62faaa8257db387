"""TreeRPO on FrozenLake in text: the branches of a fork are compared with each other.

Experimental: written from the formula, the authors' repository is empty. Paper: TreeRPO (arXiv 2506.05183). Assumes an
environment that can step a state twice; FrozenLake's states are values, so branching is free. The paper grows a full
tree of 8 branches at each of 3 depths; here 4 chains are forked at random turns, in two rounds, 12 paths in all. The
learning rate is that of grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with
1e-6.
"""

from dataclasses import replace

from bough.credit import TreeRpo
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tree_rpo_frozenlake",
        explorer=Forks(chains=4, draws=1, rounds=2),
        credit=TreeRpo(),
    )
