"""EPO (arXiv 2509.22576)."""

from dataclasses import replace

from bough.objective import Epo, PpoClip, Sum
from bough.train import Run, World


def epo(world: World) -> Run:
    """EPO (arXiv 2509.22576): an entropy bonus, and a penalty outside a band around the mean entropy of earlier steps.

    Assumes several turns, and entropies. The coefficient 0.001 and the band from 0.8 to 1.2 are the paper's. In the
    released code the penalty is a constant without a gradient (`Epo(as_released=True)`); here it is a hinge.
    """
    return world.run(objective=Sum(terms=(PpoClip(), Epo())), sampling=replace(world.sampling, entropies=True))
