"""DAPO (arXiv 2503.14476)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Normalizer, PpoClip
from bough.reward import Overlong
from bough.train import Run, World


def dapo(world: World, *, low: float = 0.2, high: float = 0.28) -> Run:
    """DAPO (arXiv 2503.14476): wider upper clip, token mean, only groups that differ, a soft limit of length.

    Assumes several paths of each task. The bounds, the mean over tokens, up to 10 rounds of sampling and no divergence
    are the paper's. The penalty grows over the last fifth of the length, which is the most tokens of a path in the
    world. The paper drops groups by accuracy, here groups without an advantage are dropped; it samples 16 paths a task,
    not 8. TRL's `loss_type="dapo"` is the mean over tokens alone: `grpo` here.
    """
    limit = world.limits.turns * world.sampling.max_tokens
    return world.run(
        rewards=(*world.rewards, Overlong(limit_tokens=limit, buffer_tokens=limit // 5)),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        max_sampling_rounds=10,
        objective=PpoClip(low=low, high=high),
        normalizer=Normalizer(by="path_tokens"),
    )
