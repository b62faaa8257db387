"""ASPO (arXiv 2508.19201)."""

from bough.credit import Aspo
from bough.train import Run, World


def aspo(world: World, *, mark: str = "valid") -> Run:
    """ASPO (arXiv 2508.19201): successful paths gain more the earlier their first marked turn.

    Assumes turns with a mark, and known success. The paper marks the first run of code; the default mark is the first
    action that the environment understands. Weights -2 and 0.7 are the paper's. The released code was not found.
    """
    return world.run(credit=Aspo(mark=mark))
