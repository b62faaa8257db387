"""CHORD on FrozenLake in text: demonstrations lie beside samples in every batch.

Paper: On-Policy RL Meets Off-Policy Experts (arXiv 2508.11408). Assumes an oracle, here for the warm-up too.
Imitation weighs .1 throughout, most for the tokens about which the policy is of two minds, as in the release; a
schedule is `Chord(peak=0.9, valley=0.05, decay=0.5)`. In the release each part is scaled by how many rows of its kind
a micro-batch was expected to have; here both are means over the step. Everything else is that of grpo_frozenlake,
whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.objective import Chord
from bough.recipes import grpo_frozenlake
from bough.train import Experts, Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="chord_frozenlake",
        objective=Chord(objective=base.objective),
        experts=Experts(demonstrations=96, per_step=8),
    )
