"""INPO on FrozenLake in text: a game of the policy against itself, played by pairs.

Paper: INPO (arXiv 2407.00617). Experimental: the formula is that of a re-implementation. Assumes several paths of each
task. Each batch is an iteration of the game, of two optimizer steps; the policy is held to the one before the batch
and, less, to the one after the warm-up. The values of eta and tau are ours, and the learning rate is that of
grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import Inpo, Pairs
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="inpo_frozenlake",
        admit=(Signal(),),
        objective=Inpo(pairs=Pairs(choice="all")),
    )
