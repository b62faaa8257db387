"""GUI-G1 (arXiv 2505.15810)."""

from bough.credit import TaskWeight, dr_grpo
from bough.objective import Normalizer
from bough.reward import BoxScore
from bough.train import Run, World


def gui_g1(world: World, *, weight: float = 0.1, field: str = "difficulty", as_released: bool = False) -> Run:
    """GUI-G1 (arXiv 2505.15810): boxes paid for hit, overlap and borders; no division by deviation or length.

    Assumes a screen whose oracle gives the right element, and answers that are boxes without thinking before them. The
    advantage is the return less the task's mean, times a weight of the task from its data; a task without one has the
    weight 1. The loss sums over a path and divides by a constant, without a divergence. The world's own rewards stay.

    Try: `bough train gui_g1 --on screens env.boxes=true env.points=true env.click=box sampling.max_tokens=24`
    Try: `bough train gui_g1 --on miniwob`

    Args:
        world: The world.
        weight: Factor on the reward of a box.
        field: The field of `Task.data` with the weight of a task.
        as_released: Whether a miss earns the terms for overlap and borders.
    """
    horizon = world.limits.turns * world.sampling.max_tokens
    return world.run(
        rewards=(*world.rewards, BoxScore(weight=weight, as_released=as_released)),
        credit=TaskWeight(base=dr_grpo(), field=field),
        normalizer=Normalizer(by="constant", horizon_tokens=horizon),
        regularizers=(),
    )
