"""CISPO on FrozenLake in text: the ratio is a bounded weight, and no token loses its gradient.

Paper: MiniMax-M1 (arXiv 2506.13585). Assumes several paths of each task. As in the paper there is no lower bound; the
upper one, which it leaves open, is DAPO's .28. Released code (verl) bounds both sides, which is `Cispo(low=0.2)`. The
divergence and the learning rate are those of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.objective import Cispo, Kl, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="cispo_frozenlake",
        objective=Sum(terms=(Cispo(high=0.28), Kl(coefficient=0.04))),
    )
