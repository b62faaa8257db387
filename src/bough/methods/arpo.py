"""ARPO (arXiv 2507.19849)."""

from bough.credit import Arpo
from bough.explore import EntropyForks
from bough.train import Run, World


def arpo(world: World, *, paths: int = 8, chains: int = 4) -> Run:
    """ARPO (arXiv 2507.19849): paths fork where the policy's entropy rose after an observation.

    Assumes an environment that can step a state twice, and entropies. Half of the paths begin at the prompt, as in the
    paper, which has 16. Credit is the paper's soft attribution: a shared token gets the mean advantage of its paths.
    The released code compares an entropy with that of the batch before; here it is compared with the same path's first
    turn.
    """
    return world.run(explorer=EntropyForks(paths=paths, chains=chains), credit=Arpo())
