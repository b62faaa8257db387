"""GRPO with truncated importance sampling on FrozenLake: the gap between engine and learner is weighed.

Truncated weights as in IMPALA (arXiv 1802.01561); a cap of 2 is customary. Assumes nothing of the environment: it is
for engines whose log-probabilities are not quite the learner's, by precision, kernels or age. The engine here
computes as the learner does, so the weights are all but 1, and the run shows that they do no harm. Everything else is
that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.objective import Kl, PpoClip, Sum, Tis
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tis_frozenlake",
        objective=Sum(terms=(Tis(objective=PpoClip(high=0.28), cap=2.0), Kl(coefficient=0.04))),
    )
