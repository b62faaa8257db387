"""ST-PPO's turn-level ratio on FrozenLake in text: all tokens of a turn are clipped together.

Experimental: the paper's formula is known from its abstract and reviews, and no code was found. Paper: S-PPO and
ST-PPO (arXiv 2511.20718). Assumes that a turn is one decision. This is the T of ST-PPO: the ratio is exp of the mean
log ratio over a turn's tokens. Its S, a division of the gradient by the norm of a clipping bias, is left out, and the
advantage is that of GRPO where the paper has a critic. Bounds and learning rate are those of grpo_frozenlake, for a
tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.objective import Kl, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="turn_ratio_frozenlake",
        objective=Sum(terms=(PpoClip(high=0.28, ratio="turn"), Kl(coefficient=0.04))),
    )
