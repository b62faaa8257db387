"""AEPO's update on FrozenLake in text: undecided tokens weigh more, and clipped ones keep a gradient.

Paper: Agentic Entropy-Balanced Policy Optimization (arXiv 2510.14545), its loss without its explorer. Assumes several
paths of each task. A weight of .2, bounds of .2 and .28, and 3 for the dual clip are those of released code, of which
one keeps the gradient of every clipped token that gains (`keep="all"`), and another, a re-implementation, of the
decided ones, the wrong way round (`keep="low"`). The divergence and the learning rate are those of grpo_frozenlake,
for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.objective import Aepo, Kl, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="aepo_frozenlake",
        objective=Sum(terms=(Aepo(), Kl(coefficient=0.04))),
    )
