"""GRPO on FrozenLake."""

from bough.methods.grpo import grpo
from bough.train import Run
from bough.worlds.frozenlake.preset import frozenlake


def grpo_frozenlake() -> Run:
    """GRPO (arXiv 2402.03300) on FrozenLake, with the wider upper clip of DAPO (2503.14476)."""
    return grpo(frozenlake(), high=0.28).replace(name="grpo_frozenlake")
