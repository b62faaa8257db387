"""ArCHer (arXiv 2402.19446)."""

from dataclasses import replace

from bough.credit import Archer
from bough.critics import UtteranceCritic
from bough.objective import Reinforce
from bough.train import Run, World


def archer(world: World) -> Run:
    """ArCHer (arXiv 2402.19446): an off-policy critic of whole turns, and a policy gradient on tokens.

    Assumes rewards that a discount of 0.9 carries to the first turn, and contexts that determine a turn's value. The
    discount, Polyak factor 0.1, critic rate 1e-3 and 20 first steps of the critic alone are the released code's. It
    takes 50 gradient steps of 256 turns for each batch, here 8 of 128. Its critic is a pretrained RoBERTa, here a small
    model with random weights. One optimizer step for each batch, because the loss has no ratio.
    """
    critic = UtteranceCritic(layers=2, steps=8, batch_turns=128, capacity_turns=20_000)
    return world.run(
        hooks=(critic,),
        credit=Archer(),
        objective=Reinforce(),
        optimizer=replace(world.optimizer, minibatches=1),
        steps=world.schedule.steps + critic.warmup_steps,
    )
