"""OTC (arXiv 2504.14870)."""

from typing import Literal

from bough.hooks import FewestCalls
from bough.needs import CALLS, gives_of
from bough.train import Run, World


def otc(world: World, *, smoothing: float = 1.0, form: Literal["grpo", "ppo"] = "grpo") -> Run:
    """OTC (arXiv 2504.14870): GRPO whose successes are paid most with the fewest tool calls.

    Assumes a success that pays 1. In a world without tools each action is a call. The fewest calls of a task are kept
    across steps; with form="ppo" no call is best whatever the task. The advantage is GRPO's for both forms.

    Try: `bough train otc --on search`
    Try: `bough train otc --on screens`

    Args:
        world: The world.
        smoothing: How fast the reward falls where no call is needed, > 0.
        form: The factor of the paper's form for GRPO or for PPO.
    """
    actions = CALLS not in gives_of(world.parser)
    return world.run(hooks=(FewestCalls(smoothing=smoothing, form=form, actions=actions),))
