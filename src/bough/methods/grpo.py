"""GRPO (arXiv 2402.03300)."""

from bough.objective import PpoClip
from bough.train import Run, World


def grpo(world: World, *, low: float = 0.2, high: float = 0.2) -> Run:
    """GRPO (DeepSeekMath, arXiv 2402.03300): returns normalised by group, clipped ratio, divergence in the loss.

    Assumes several paths of each task. The divergence is the world's, where it has one. The paper takes the mean over
    paths (`normalizer.by=paths`; here over tokens), a coefficient of 0.04 for the divergence, and 64 paths a task.
    """
    return world.run(objective=PpoClip(low=low, high=high))
