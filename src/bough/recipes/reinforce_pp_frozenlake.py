"""REINFORCE++ on FrozenLake in text: one path of each task, its returns to go whitened over the batch.

Paper: REINFORCE++ (arXiv 2501.03262). Assumes that tasks are alike enough to share one baseline, the batch's mean. The
divergence is in the reward, token by token, with the 0.01 of the authors' OpenRLHF, and not in the loss. Batches have
as many paths as in grpo_frozenlake, of eight times as many tasks; the learning rate and the upper clip are its own, for
a tiny model that learns from scratch. Released code whitens over tokens, too, so that long paths weigh more.
"""

from dataclasses import replace

from bough.credit import ReinforcePlusPlus
from bough.explore import Chains
from bough.objective import PpoClip
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="reinforce_pp_frozenlake",
        explorer=Chains(n=1),
        credit=ReinforcePlusPlus(kl=0.01),
        objective=PpoClip(high=0.28),
        batch_tasks=128,
    )
