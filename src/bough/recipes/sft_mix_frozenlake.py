"""GRPO with imitation mixed in on FrozenLake: one coefficient, demonstrations in every batch.

As in Trinity-RFT (arXiv 2505.17826), with its weight of .1. Assumes an oracle, here for the warm-up too. In the
release each part is scaled by how many rows of its kind a micro-batch was expected to have; here both are means over
the step. Everything else is that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.objective import SftMix
from bough.recipes import grpo_frozenlake
from bough.train import Experts, Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="sft_mix_frozenlake",
        objective=SftMix(objective=base.objective, mu=0.1),
        experts=Experts(demonstrations=96, per_step=8),
    )
