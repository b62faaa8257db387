"""RLOO on FrozenLake in text: each path against the mean of the others, the baseline without bias.

Paper: Back to Basics (arXiv 2402.14740). Assumes several paths of each task. The paper takes a whole answer as one
action, has the divergence in the reward and no clip; here each token has its own clipped ratio and the divergence is in
the loss, as in grpo_frozenlake, whose numbers are kept. In released code (verl, TRL) a path that is alone in its group
gets its return; here it gets nothing.
"""

from dataclasses import replace

from bough.credit import rloo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="rloo_frozenlake",
        credit=rloo(),
    )
