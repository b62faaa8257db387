"""SALT on FrozenLake in text: a move that paths share gets the mean of what they came to.

Experimental: only the abstract and reviews of the paper were read. Paper: SALT (arXiv 2510.20022). Assumes states with
keys, and rewards for the outcome alone: what is shared is taken to be neutral. A step is shared when state, move and
next state are the same, with no history; the advantages of paths are GRPO's. The learning rate is that of
grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6. No code was found.
"""

from dataclasses import replace

from bough.credit import Salt
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="salt_frozenlake",
        credit=Salt(),
    )
