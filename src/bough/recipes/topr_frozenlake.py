"""TOPR on FrozenLake in text: success is imitated, failure pushed away as far as it is still likely.

Paper: Tapered Off-Policy REINFORCE (arXiv 2503.14286). Assumes several paths of each task, of a policy that may be
old: four optimizer steps a batch make the later ones off-policy here. Paths that lose weigh the product of their
ratios, at most 1, as in the paper; released code (Trinity-RFT) takes the ratio of each token, `Topr(ratio="token")`.
The paper's rewards are 1 and -1 without a baseline; here the advantage is the return minus the mean of the task. The
learning rate is that of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.credit import dr_grpo
from bough.objective import Kl, Sum, Topr
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="topr_frozenlake",
        credit=dr_grpo(),
        objective=Sum(terms=(Topr(), Kl(coefficient=0.04))),
        optimizer=replace(base.optimizer, minibatches=4),
    )
