"""ArCHer on FrozenLake in text: an off-policy critic of whole turns over a token-level policy gradient.

Paper: ArCHer (arXiv 2402.19446). Assumes rewards that a discount of 0.9 carries back to the first turn, and contexts
from which a turn can be judged. Discount, Polyak 0.1, critic rate 1e-3, 256 turns a gradient step and 20 steps of the
critic alone are those of the authors' code; it takes 50 gradient steps a batch, here 20 do, and encodes with a
pretrained RoBERTa, here with a small model that learns from nothing. One optimizer step a batch, since the loss has no
ratio. The penalty on divergence, which the paper does without, and the policy's learning rate are grpo_frozenlake's.
"""

from dataclasses import replace

from bough.credit import Archer
from bough.objective import Kl, Reinforce, Sum
from bough.policy import UtteranceCritic
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="archer_frozenlake",
        advisers=(UtteranceCritic(steps=20, capacity_turns=20_000),),
        credit=Archer(),
        objective=Sum(terms=(Reinforce(), Kl(coefficient=0.04))),
        optimizer=replace(base.optimizer, parts=1),
        steps=120,
    )
