"""Turn-PPO on FrozenLake in text: a critic looks before each turn, and each turn has one advantage.

Paper: Turn-PPO (arXiv 2512.17008), whose code was not to be found: experimental. Assumes that what is read before a
turn is its state. Discount 0.99 and lambda 0.9 are the paper's, and so is a critic that learns faster than the policy;
it clips the ratio of a whole turn, here each token has its own. One path of each task, as in gae_frozenlake.
"""

from dataclasses import replace

from bough.credit import TurnPpo
from bough.recipes import gae_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        gae_frozenlake.run(),
        name="turn_ppo_frozenlake",
        credit=TurnPpo(),
    )
