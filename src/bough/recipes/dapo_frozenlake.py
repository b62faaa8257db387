"""DAPO on FrozenLake in text: clip higher, token mean, only groups that teach, a soft end to length.

Paper: DAPO (arXiv 2503.14476). Assumes several paths of each task. From the paper: bounds of .2 and .28, the mean
over tokens, no divergence, up to 10 rounds of sampling until the batch is full of groups that disagree, and a
punishment that grows over the last fifth of the length: here of 56 tokens, what 14 turns of 4 can hold, where the
paper has 20,480. The paper looks at the accuracy of a group, here its advantages decide. The learning rate is that of
grpo_frozenlake, for a tiny model that learns from scratch; its 8 paths a task are half of the paper's.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import Normalizer, PpoClip
from bough.recipes import grpo_frozenlake
from bough.reward import EnvReward, Overlong
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="dapo_frozenlake",
        rewards=(EnvReward(), Overlong(limit_tokens=56, buffer_tokens=11)),
        admit=(Signal(),),
        rounds=10,
        objective=PpoClip(low=0.2, high=0.28),
        share=Normalizer(by="path_tokens"),
    )
