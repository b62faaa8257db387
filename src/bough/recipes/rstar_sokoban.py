"""rStar-Math on Sokoban."""

from bough.methods.rstar import rstar
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def rstar_sokoban() -> Run:
    """rStar-Math (arXiv 2501.04519) on Sokoban: four rounds of a search of 256 rooms."""
    return rstar(sokoban()).replace(name="rstar_sokoban")
