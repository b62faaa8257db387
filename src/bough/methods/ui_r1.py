"""UI-R1 (arXiv 2503.21620)."""

from bough.reward import Format, LengthBudget, PointInBox
from bough.train import Run, World


def ui_r1(world: World, *, weight: float = 0.1, clicks_only: bool = False, efficient: bool = False) -> Run:
    """UI-R1 (arXiv 2503.21620): GRPO with points for the kind of an action, for its target, and for the format.

    Assumes a screen whose oracle gives the right action. The three parts weigh the same; that of the format is a
    penalty for answers in another format, which differs from a point for the others by a constant. The paper's tasks
    have one action; here a path pays for a target once, and the world's own rewards stay, so `weight` is small. A
    `Format` of the world's own is kept in place of this one.

    Try: `bough train ui_r1 --on screens env.boxes=true env.points=true`
    Try: `bough train ui_r1 --on miniwob`

    Args:
        world: The world.
        weight: Reward of an action of the right kind on its target.
        clicks_only: Whether only clicks are paid; otherwise an action without a target is paid in full for its kind.
        efficient: Whether short successes are paid too, as in UI-R1-E.
    """
    own = any(isinstance(each, Format) for each in world.rewards)
    extra = (*(() if own else (Format(penalty=weight / 2),)), *((LengthBudget(weight=weight),) if efficient else ()))
    return world.run(rewards=(*world.rewards, PointInBox(weight=weight, clicks_only=clicks_only), *extra))
