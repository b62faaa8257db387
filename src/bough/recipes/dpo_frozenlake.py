"""DPO on FrozenLake in text: of the paths of a task, each that crosses the lake over each that does not.

Paper: Direct Preference Optimization (arXiv 2305.18290), whose pairs are given once; here the policy writes new ones
at every step, and the reference stays the policy after the warm-up. Assumes several paths of each task, and returns
that tell them apart: groups that tie are left out. Beta is the paper's .1. Trinity-RFT fuses the pairs of a batch into
one. The learning rate is that of grpo_frozenlake, for a tiny model that learns from scratch; the paper's is 1e-6.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import Dpo, Pairs
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="dpo_frozenlake",
        admit=(Signal(),),
        objective=Dpo(pairs=Pairs(choice="all")),
    )
