"""Dr.GRPO on FrozenLake in text: GRPO without its two normalisers, the deviation and the length.

Paper: Understanding R1-Zero-Like Training (arXiv 2503.20783). Assumes several paths of each task. No division by the
standard deviation, and a loss that sums over a path and divides by a constant: here 56 tokens, what 14 turns of 4 can
hold, where the paper takes the length limit. Released code often has one half of this only. The paper does without a
divergence; it is here as in grpo_frozenlake, whose other numbers are kept, since a tiny model learns from scratch.
"""

from dataclasses import replace

from bough.credit import dr_grpo
from bough.objective import Normalizer
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="dr_grpo_frozenlake",
        credit=dr_grpo(),
        share=Normalizer(by="constant", horizon_tokens=56),
    )
