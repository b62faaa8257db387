"""REINFORCE++-baseline on FrozenLake in text: against the task's mean, then whitened over the batch.

Paper: REINFORCE++ (arXiv 2501.03262), its variant for several paths of each task, which it assumes. The divergence is
in the loss and estimated by k2, whose gradient is the right one for samples of the policy. Its weight, the learning
rate and the upper clip are those of grpo_frozenlake, for a tiny model that learns from scratch. In released code (verl)
a path that is alone in its group keeps its return, and groups that tie get what the whitening gives them; both get
nothing here.
"""

from dataclasses import replace

from bough.credit import reinforce_pp_baseline
from bough.objective import Kl, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="reinforce_pp_baseline_frozenlake",
        credit=reinforce_pp_baseline(),
        objective=Sum(terms=(PpoClip(high=0.28), Kl(coefficient=0.04, estimator="k2"))),
    )
