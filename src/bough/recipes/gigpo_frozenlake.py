"""GiGPO on FrozenLake."""

from bough.methods.gigpo import gigpo
from bough.objective import PpoClip
from bough.reward import InvalidAction
from bough.train import Run
from bough.worlds.frozenlake.preset import frozenlake


def gigpo_frozenlake() -> Run:
    """GiGPO (arXiv 2505.10978) on FrozenLake, with the paper's penalty of 0.1 for an invalid action.

    Tuned: the wider upper clip of DAPO (2503.14476), as in `grpo_frozenlake`.
    """
    world = frozenlake()
    world = world.replace(rewards=(*world.rewards, InvalidAction(penalty=0.1)))
    return gigpo(world).replace(name="gigpo_frozenlake", objective=PpoClip(high=0.28))
