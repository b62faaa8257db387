"""GRPO on TextWorld."""

from bough.methods.grpo import grpo
from bough.train import Run
from bough.worlds.textworld.preset import textworld


def grpo_textworld() -> Run:
    """GRPO (arXiv 2402.03300) on TextWorld, with the wider upper clip of DAPO (2503.14476)."""
    return grpo(textworld(), high=0.28).replace(name="grpo_textworld")
