"""ORPO on FrozenLake in text: imitate the path that crosses the lake, and prefer it to one that does not.

Paper: ORPO (arXiv 2403.07691), on pairs given once; here the policy writes new ones at every step. Assumes several
paths of each task. There is no reference, and the likelihood of the winner does most of the work. The weight of the
preference is the paper's .1, and the learning rate that of grpo_frozenlake, for a tiny model that learns from scratch;
the paper's is 8e-6.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import Orpo, Pairs
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="orpo_frozenlake",
        admit=(Signal(),),
        objective=Orpo(pairs=Pairs(choice="all")),
    )
