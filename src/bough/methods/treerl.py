"""TreeRL (arXiv 2506.11902)."""

from bough.credit import TreeRl
from bough.explore import EpTree
from bough.train import Run, World


def treerl(world: World, *, chains: int = 2, spots: int = 3, forks_each: int = 1) -> Run:
    """TreeRL (arXiv 2506.11902): forks before surprising tokens; a part gets its value over two earlier ones.

    Assumes an environment that can step a state twice, and log-probabilities. The paper grows 6 chains with 2 forks of
    2 paths each and trains on 16 of the 30; the defaults make 8 paths, and all are trained on. The released code
    divides two values by different square roots before it subtracts them (`TreeRl(as_released=True)`).
    """
    return world.run(explorer=EpTree(chains=chains, spots=spots, forks_each=forks_each), credit=TreeRl())
