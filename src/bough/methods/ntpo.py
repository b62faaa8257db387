"""NTPO (POAD, arXiv 2405.15821)."""

from bough import credit
from bough.methods.poad import poad
from bough.train import Run, World


def ntpo(world: World) -> Run:
    """NTPO (arXiv 2405.15821): token values, discounted at every token; the baseline of POAD.

    Assumes what `poad` does. The paper calls it naive token-level policy optimization: the first tokens of long actions
    are discounted most.
    """
    return poad(world).replace(credit=credit.ntpo())
