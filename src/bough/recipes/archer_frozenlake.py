"""ArCHer on FrozenLake in text: an off-policy critic of whole turns over a token-level policy gradient.

Paper: ArCHer (arXiv 2402.19446). Assumes rewards that a discount of 0.9 carries back to the first turn, and contexts
from which a turn can be judged. Discount, Polyak 0.1, critic rate 1e-3 and 20 steps of the critic alone are those of
the authors' code. It takes 50 gradient steps of 256 turns a batch, here 8 of 128 do, for the sake of two CPU cores; and
it encodes with a pretrained RoBERTa, here with a model of the policy's size that learns from nothing. One optimizer
step a batch, since the loss has no ratio. The penalty on divergence, which the paper does without, and the policy's
learning rate are grpo_frozenlake's.
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
        advisers=(UtteranceCritic(layers=2, steps=8, batch_turns=128, capacity_turns=20_000),),
        credit=Archer(),
        objective=Sum(terms=(Reinforce(), Kl(coefficient=0.04))),
        optimizer=replace(base.optimizer, minibatches=1),
        steps=120,
    )
