"""GRPO on Sokoban."""

from bough.methods.grpo import grpo
from bough.train import Run
from bough.worlds.sokoban.preset import sokoban


def grpo_sokoban() -> Run:
    """GRPO (arXiv 2402.03300) on Sokoban, with the wider upper clip of DAPO (2503.14476)."""
    return grpo(sokoban(), high=0.28).replace(name="grpo_sokoban")
