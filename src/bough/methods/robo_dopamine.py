"""Robo-Dopamine (arXiv 2512.23703)."""

from bough.appraise import HopProgress, StateProgress
from bough.appraise.state_progress import Potential
from bough.credit import StepGrpo
from bough.needs import POLICY
from bough.reward import PotentialShaping
from bough.train import Run, World


def robo_dopamine(
    world: World,
    *,
    judge: str = POLICY,
    oracle: bool = False,
    potential: Potential | None = None,
    discount: float = 0.99,
    caution: float = 0.0,
    weight: float = 1.0,
) -> Run:
    """Robo-Dopamine (arXiv 2512.23703): pays step-aware progress as policy-invariant shaping; a model judges states.

    Assumes a model that can compare states: set `judge` and `models`, else the policy judges itself. With `oracle` the
    progress is that of the oracle's plans, with `potential` that of a function of the environment's states; both need
    no model. The world's rewards stay.

    The return to go from a turn is then that of the world minus the progress before the turn, which is its baseline:
    in a task that fails, turns that came nearer still have another advantage than turns that did not. `StepGrpo`
    compares it among the turns with the same number. The paper trains a judge of images, and robots with other
    learners; its code for learning is not released.

    Try: `bough train 'robo_dopamine(oracle=true)' --on sokoban`
    """
    if oracle or potential is not None:
        progress = StateProgress(potential=potential)
    else:
        progress = HopProgress(role=judge, caution=caution)
    return world.run(
        appraisers=(*world.appraisers, progress),
        rewards=(*world.rewards, PotentialShaping(column=progress.column, discount=discount, weight=weight)),
        credit=StepGrpo(discount=discount, std="batch"),
    )
