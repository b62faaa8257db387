"""SAPO on FrozenLake in text: a sigmoid of the ratio closes softly where PPO cuts off.

Paper: Soft Adaptive Policy Optimization (arXiv 2511.20347). Assumes several paths of each task. Temperatures of 1 for
what gains and 1.05 for what loses are the paper's. The divergence and the learning rate are those of grpo_frozenlake,
for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.objective import Kl, Sapo, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="sapo_frozenlake",
        objective=Sum(terms=(Sapo(gaining=1.0, losing=1.05), Kl(coefficient=0.04))),
    )
