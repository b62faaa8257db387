"""GSPO on FrozenLake in text: one ratio for a whole path, clipped as one.

Paper: Group Sequence Policy Optimization (arXiv 2507.18071). Assumes several paths of each task, and
log-probabilities of the engine that are those of the learner: the bounds are far tighter than PPO's. The paper's 3e-4
and 4e-4 are for answers of thousands of tokens and a learning rate of about 1e-6. A path here has some thirty tokens
and a tiny model learns from scratch at the rate of grpo_frozenlake, so the mean ratio moves a hundred times as far:
the bounds are .03 and .04. The mean is over paths, as in the paper, which has no divergence in the loss; here it
stays.
"""

from dataclasses import replace

from bough.objective import Kl, Normalizer, Sum, gspo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="gspo_frozenlake",
        objective=Sum(terms=(gspo(low=0.03, high=0.04), Kl(coefficient=0.04))),
        share=Normalizer(by="paths"),
    )
