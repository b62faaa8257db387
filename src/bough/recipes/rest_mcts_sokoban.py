"""ReST-MCTS* on Sokoban."""

from bough.methods.rest_mcts import rest_mcts
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def rest_mcts_sokoban() -> Run:
    """ReST-MCTS* (arXiv 2406.03816) on Sokoban: three rounds of a search of 256 rooms."""
    return rest_mcts(sokoban()).replace(name="rest_mcts_sokoban")
