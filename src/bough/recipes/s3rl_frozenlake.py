"""S3RL on FrozenLake in text: in the first steps, walks begin somewhere on the oracle's way to the goal.

Paper: Snapshot Reinforcement Learning (arXiv 2403.00673), on robots in MuJoCo with TD3, SAC and PPO. Assumes an oracle,
and an environment in which the same actions lead to the same place. The first tenth of the training begins from
snapshots, in 6 clusters, as in the paper; they come from 50 lakes rather than 10 episodes of one task, so that a batch
of 16 is not always the same, and are clustered by how far it is to the goal instead of a critic's value. The paper
gains little for PPO. Everything else is that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.curate import Snapshots
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="s3rl_frozenlake",
        advisers=(Snapshots(episodes=50, steps=10),),
    )
