"""Self-play preferences (SPPO) on FrozenLake in text: as much likelier as a path wins more often than not.

Paper: Self-Play Preference Optimization (arXiv 2405.00675). Assumes several paths of each task: a path's win rate is
over them, and returns judge instead of a preference model. Each batch is an iteration. Eta is the paper's 1000, with
which an iteration is a gradient step on win rates. The learning rate is that of grpo_frozenlake, for a tiny model that
learns from scratch.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import SelfPlay
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="selfplay_frozenlake",
        admit=(Signal(),),
        objective=SelfPlay(),
    )
