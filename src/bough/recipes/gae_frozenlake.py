"""PPO on FrozenLake in text: a critic on the policy's own hidden states says what each token was worth.

Papers: PPO (arXiv 1707.06347), GAE (1506.02438). Assumes nothing about groups: one path of each task, as many paths a
batch as in grpo_frozenlake. Discount and lambda are 1, and the value loss is clipped at 0.5 with a coefficient of 0.5,
as in verl, where the critic is a model of its own that learns 10 times as fast as the policy; here it is a linear head
that learns twice as fast, and its loss teaches the policy's body too. Clip and divergence are those of grpo_frozenlake.
In verl whitened advantages of observations are not 0; here they are.
"""

from dataclasses import replace

from bough.credit import Gae
from bough.explore import Chains
from bough.objective import Kl, PpoClip, Sum, ValueClip
from bough.policy import ValueHead
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="gae_frozenlake",
        explorer=Chains(n=1),
        credit=Gae(),
        critic=ValueHead(),
        objective=Sum(terms=(PpoClip(high=0.28), ValueClip(), Kl(coefficient=0.04))),
        batch_tasks=128,
    )
