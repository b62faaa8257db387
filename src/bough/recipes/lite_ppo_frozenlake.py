"""Lite PPO on FrozenLake in text: the task's mean, the batch's deviation, a mean over tokens.

Paper: Tricks or Traps? (arXiv 2508.08221), which finds that these two of many tricks are enough. Assumes several paths
of each task, and rewards on one scale in all tasks, since they share the deviation. The loss is the plain clipped one,
without a divergence; the learning rate is that of grpo_frozenlake, for a tiny model that learns from
scratch.
"""

from dataclasses import replace

from bough.credit import lite_ppo
from bough.objective import Normalizer, PpoClip
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="lite_ppo_frozenlake",
        credit=lite_ppo(),
        objective=PpoClip(),
        share=Normalizer(by="path_tokens"),
    )
