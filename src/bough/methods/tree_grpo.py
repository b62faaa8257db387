"""Tree-GRPO (arXiv 2509.21240)."""

from bough.credit import TreeGrpo
from bough.explore import Forks
from bough.train import Run, World


def tree_grpo(world: World, *, chains: int = 2, draws: int = 3) -> Run:
    """Tree-GRPO (arXiv 2509.21240): chains with forks at random turns, compared in the task and in the tree.

    Assumes an environment that can step a state twice. The paper's script grows 2 chains with 2 forks each and keeps 3
    paths of a tree; here 2 chains with 3 forks each make 8 paths, and all are kept. The released code gives a path
    alone in its group its return (`TreeGrpo(as_released=True)`); here it gets 0.
    """
    return world.run(explorer=Forks(chains=chains, draws=draws), credit=TreeGrpo())
