"""CPL on Sokoban."""

from bough.methods.cpl import cpl
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def cpl_sokoban() -> Run:
    """CPL (arXiv 2409.08642) on Sokoban: three rounds of a search of 64 rooms."""
    return cpl(sokoban()).replace(name="cpl_sokoban")
