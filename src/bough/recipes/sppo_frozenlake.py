"""sPPO on FrozenLake in text: the log ratio, and only inside a range.

Released as a loss of Trinity-RFT (arXiv 2505.17826); no paper was found that derives it. Assumes several paths of
each task. The range of 1 / 1.3 to 1.3 is the release's. The divergence and the learning rate are those of
grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.objective import Kl, Sppo, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="sppo_frozenlake",
        objective=Sum(terms=(Sppo(epsilon=0.3), Kl(coefficient=0.04))),
    )
