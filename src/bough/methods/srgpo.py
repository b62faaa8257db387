"""SRGPO (SeeNav-Agent, arXiv 2512.02631)."""

from bough.credit import Srgpo
from bough.reward import InvalidAction
from bough.train import Run, World


def srgpo(world: World, *, penalty: float = 0.1) -> Run:
    """SRGPO (SeeNav-Agent, arXiv 2512.02631): compares outcomes by task, and single steps in random groups.

    Assumes rewards that judge a step in any state; here -`penalty` for an invalid action, in place of the world's own
    penalty. Groups of 16 steps and the weight 0.5 are the paper's. In the released code the switch that keeps groups
    inside a task has no effect, and statistics of paths are over turns (`Srgpo(as_released=True)`).
    """
    others = (each for each in world.rewards if not isinstance(each, InvalidAction))
    return world.run(rewards=(*others, InvalidAction(penalty=penalty)), credit=Srgpo(step="invalid_action"))
