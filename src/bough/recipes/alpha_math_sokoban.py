"""AlphaMath on Sokoban."""

from bough.methods.alpha_math import alpha_math
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def alpha_math_sokoban() -> Run:
    """AlphaMath (arXiv 2405.03553) on Sokoban: three rounds of a search of 256 rooms."""
    return alpha_math(sokoban()).replace(name="alpha_math_sokoban")
