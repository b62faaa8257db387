"""SRGPO on FrozenLake in text: single moves are compared in random groups, by rewards of their own.

Paper: SeeNav-Agent (arXiv 2512.02631). Assumes rewards that judge a step whatever state it was taken in; here 0.1 off
for an action that is none. The outcome of a path is what the environment pays, 1 at the goal. Groups of 16 steps and
weight 0.5 are the paper's. The learning rate is that of grpo_frozenlake: a model this small learns from scratch, where
papers tune large ones with 1e-6. In the released code the switch that keeps groups within a task does nothing, and the
statistics of paths are over turns (`Srgpo(as_released=True)`).
"""

from dataclasses import replace

from bough.credit import Srgpo
from bough.recipes import grpo_frozenlake
from bough.reward import EnvReward, InvalidAction
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="srgpo_frozenlake",
        rewards=(EnvReward(), InvalidAction(penalty=0.1)),
        credit=Srgpo(step="invalid_action"),
    )
