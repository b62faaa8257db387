"""W-DPO on FrozenLake in text: preferences between paths count by how clear they are.

Paper: StepORLM (arXiv 2509.22558). Experimental: its formula of the weights was not available; here they are
differences of advantages, which FrozenLake's single reward makes alike within a task: a task that is solved rarely, or
nearly always, weighs more than an even one. Assumes several paths of each task. Beta is .1, and the learning rate that
of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import WDpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="w_dpo_frozenlake",
        admit=(Signal(),),
        objective=WDpo(),
    )
