"""Tree-GRPO on FrozenLake in text: chains and forks, compared within the task and within the tree.

Paper: Tree-GRPO (arXiv 2509.21240). Assumes an environment that can step a state twice; FrozenLake's states are values,
so branching is free. The paper's script grows 2 chains with 2 forks each, in one round, and keeps 3 of the paths of a
tree; here 3 forks each make 8 paths, as many as grpo_frozenlake has, and all are kept. The learning rate is that of
grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6. The released code gives
a path that is alone in its group its return instead of 0 (`TreeGrpo(as_released=True)`).
"""

from dataclasses import replace

from bough.credit import TreeGrpo
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tree_grpo_frozenlake",
        explorer=Forks(chains=2, draws=3),
        credit=TreeGrpo(),
    )
