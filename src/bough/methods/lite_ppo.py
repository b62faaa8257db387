"""Lite PPO (arXiv 2508.08221)."""

from bough import credit
from bough.objective import Normalizer, PpoClip
from bough.train import Run, World


def lite_ppo(world: World) -> Run:
    """Lite PPO (arXiv 2508.08221): the task's mean, the batch's standard deviation, a mean over tokens.

    Assumes several paths of each task, and rewards of one scale in all tasks, because they share the deviation. The
    loss is PPO's without a divergence, as in the paper.
    """
    return world.run(
        credit=credit.lite_ppo(), objective=PpoClip(), regularizers=(), normalizer=Normalizer(by="path_tokens")
    )
