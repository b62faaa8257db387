"""MCTS-DPO on Sokoban."""

from bough.methods.mcts_dpo import mcts_dpo
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def mcts_dpo_sokoban() -> Run:
    """MCTS-DPO (arXiv 2405.00451) on Sokoban: three rounds of a search of 64 rooms."""
    return mcts_dpo(sokoban()).replace(name="mcts_dpo_sokoban")
