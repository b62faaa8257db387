"""EMPG on FrozenLake in text: sure moves learn more, unsure ones less, and clear next moves are paid.

Paper: EMPG (arXiv 2509.09265). Assumes entropies of the whole distribution that was sampled from, which the engine
keeps when asked; of the environment nothing. Both exponents 1 and a bonus of 0.05 are the paper's. The learning rate is
that of grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6. The authors'
code was not found.
"""

from dataclasses import replace

from bough.credit import Empg
from bough.engine import Sampling
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="empg_frozenlake",
        sampling=Sampling(max_tokens=4, entropies=True),
        credit=Empg(),
    )
