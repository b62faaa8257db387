"""HAPO (arXiv 2505.11225)."""

from typing import Literal

from bough.explore import Chains
from bough.hooks import LengthHistory
from bough.hooks.success_record import History
from bough.reward import Repetition
from bough.train import Run, World


def hapo(
    world: World,
    *,
    weight: float = 1.0,
    form: Literal["cosine", "linear"] = "cosine",
    history: History = "min",
    repetition: float = 0.0,
    n: int = 4,
) -> Run:
    """HAPO (arXiv 2505.11225): GRPO that pays answers shorter than the task's shortest success of earlier steps.

    Assumes tasks that occur several times, and a success that pays 1. The paper samples 2 answers of a task and repeats
    its tasks five times. `LengthHistory` has the formula, `Repetition` that of the penalty, which the paper leaves off.

    Try: `bough train hapo --on screens tasks.count=800`

    Args:
        world: The world.
        weight: From 0 to 1.
        form: The shape of the reward.
        history: Whether lengths are compared with the shortest success or with the mean of all successes.
        repetition: Penalty on repeated n-grams of tokens; 0 for none.
        n: Paths of a task.
    """
    penalty = (Repetition(penalty=repetition),) if repetition else ()
    return world.run(
        explorer=Chains(n=n),
        rewards=(*world.rewards, *penalty),
        hooks=(LengthHistory(weight=weight, form=form, history=history),),
    )
