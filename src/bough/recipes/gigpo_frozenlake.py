"""GiGPO on FrozenLake in text: paths of a lake, and moves from the same cell, are compared.

Paper: GiGPO (arXiv 2505.10978). Assumes states with keys that paths of one task meet again, here the map with the agent
on it. Discount 0.95, weight 1, 8 paths a task and 0.1 off for an action that is none are the paper's, the divergence's
weight of 0.04 is that of grpo_frozenlake, where the paper has 0.01. The learning rate is that of grpo_frozenlake: a
model this small learns from scratch, where papers tune large ones with 1e-6. The released code takes the statistics of
paths over turns (`Gigpo(as_released=True)`).
"""

from dataclasses import replace

from bough.credit import Gigpo
from bough.recipes import grpo_frozenlake
from bough.reward import EnvReward, InvalidAction
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="gigpo_frozenlake",
        rewards=(EnvReward(), InvalidAction(penalty=0.1)),
        credit=Gigpo(discount=0.95, weight=1.0),
    )
