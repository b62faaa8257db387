"""GUI-G1 (arXiv 2505.15810)."""

from bough.credit import TargetSize, TaskWeight, dr_grpo
from bough.objective import Normalizer
from bough.reward import BoxScore
from bough.train import Run, World


def gui_g1(world: World, *, weight: float = 0.1, field: str | None = None, as_released: bool = False) -> Run:
    """GUI-G1 (arXiv 2505.15810): boxes paid for hit, overlap and borders; no division by deviation or length.

    Assumes a screen whose oracle gives the right element, and answers that are boxes without thinking before them. The
    advantage is the return less the task's mean, times a weight that is larger for a small element (`TargetSize`), or
    with `field` times a weight from the task's data. On `screens` icons have the weight 1.4 and rows .7; without
    `env.links=false` tasks of the first tier click rows alone. The loss sums over a path and divides by a constant,
    without a divergence. The world's own rewards stay.

    Try: `bough train gui_g1 --on screens env.links=false env.boxes=true env.points=true env.click=box
    sampling.max_tokens=24`
    Try: `bough train gui_g1 --on miniwob`

    Args:
        world: The world.
        weight: Factor on the reward of a box.
        field: The field of `Task.data` with the weight of a task; None for the size of the targets.
        as_released: Whether a miss earns the terms for overlap and borders.
    """
    plain = dr_grpo()
    horizon = world.max_path_tokens
    return world.run(
        rewards=(*world.rewards, BoxScore(weight=weight, as_released=as_released)),
        credit=TargetSize(base=plain) if field is None else TaskWeight(base=plain, field=field),
        normalizer=Normalizer(by="constant", horizon_tokens=horizon),
        regularizers=(),
    )
