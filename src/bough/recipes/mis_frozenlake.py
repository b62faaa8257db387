"""GRPO with masked importance sampling on FrozenLake: tokens about which engine and learner differ are left.

Paper: Ring-1T (arXiv 2510.18855), whose IcePop keeps weights from .5 to 5. Assumes nothing of the environment: it is
for engines whose log-probabilities are not quite the learner's, by precision, kernels or age. The engine here
computes as the learner does, so that nothing is masked, and the run shows that it does no harm. Everything else is
that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.objective import Kl, Mis, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="mis_frozenlake",
        objective=Sum(terms=(Mis(objective=PpoClip(high=0.28)), Kl(coefficient=0.04))),
    )
