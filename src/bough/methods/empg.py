"""EMPG (arXiv 2509.09265)."""

from dataclasses import replace

from bough.credit import Empg
from bough.train import Run, World


def empg(world: World) -> Run:
    """EMPG (arXiv 2509.09265): confident turns get larger gradients, uncertain ones smaller, clear next turns a bonus.

    Assumes entropies of the sampled distribution. Both exponents 1 and the bonus 0.05 are the paper's. The released
    code was not found.
    """
    return world.run(credit=Empg(), sampling=replace(world.sampling, entropies=True))
