"""HAPO (arXiv 2505.11225)."""

from typing import Literal

from bough.explore import Chains
from bough.hooks import LengthHistory
from bough.train import Run, World


def hapo(world: World, *, weight: float = 1.0, form: Literal["cosine", "linear"] = "cosine", n: int = 4) -> Run:
    """HAPO (arXiv 2505.11225): GRPO that pays answers shorter than the task's shortest success of earlier steps.

    Assumes tasks that occur several times, and a success that pays 1. The paper samples 2 answers of a task and repeats
    its tasks five times; its penalty for repetitions is left out. `LengthHistory` has the formula.

    Try: `bough train hapo --on screens tasks.count=800`

    Args:
        world: The world.
        weight: From 0 to 1.
        form: The shape of the reward.
        n: Paths of a task.
    """
    return world.run(explorer=Chains(n=n), hooks=(LengthHistory(weight=weight, form=form),))
