"""TreeRL on FrozenLake in text: forks at surprising tokens; a stretch is worth its value over two earlier ones.

Paper: TreeRL (arXiv 2506.11902). Assumes an environment that can step a state twice, and log-probabilities;
FrozenLake's states are values, so branching is free. The paper grows 6 chains with 2 forks of 2 paths each, and trains
on 16 of the 30; here 2 chains with 3 forks of one path make 8, and all are trained on. The learning rate is that of
grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6. The released code
divides two values by different square roots before it subtracts them (`TreeRl(as_released=True)`).
"""

from dataclasses import replace

from bough.credit import TreeRl
from bough.explore import Surprisal
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="treerl_frozenlake",
        explorer=Surprisal(chains=2, spots=3, forks_each=1),
        credit=TreeRl(),
    )
