"""NTPO on FrozenLake in text: token values, discounted at every token; what POAD is compared with.

Paper: POAD (arXiv 2405.15821), which calls this naive token-level policy optimization: long actions look far from their
reward. Assumes what POAD does.
"""

from dataclasses import replace

from bough.credit import ntpo
from bough.recipes import poad_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        poad_frozenlake.run(),
        name="ntpo_frozenlake",
        credit=ntpo(),
    )
