"""DAPO (arXiv 2503.14476)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Normalizer, PpoClip
from bough.reward import Overlong
from bough.train import Run, World


def dapo(world: World, *, low: float = 0.2, high: float = 0.28, limit_tokens: int = 0) -> Run:
    """DAPO (arXiv 2503.14476): wider upper clip, token mean, only groups that differ, a soft limit of length.

    Assumes several paths of each task. The bounds, the mean over tokens, up to 10 rounds of sampling and no divergence
    are the paper's. The penalty grows over the last fifth of `limit_tokens`. By default that is the most tokens of a
    path in the world, which paths of short actions do not come near: on `sokoban` they have at most 13 of 20 tokens. A
    limit of 13 penalises the longest there; with 10 the penalty outweighs success, and a policy unlearned what it could
    (41 to 7 % in forty steps). The paper drops groups by accuracy, here groups without an advantage are dropped; it
    samples 16 paths a task, not 8. TRL's `loss_type="dapo"` is the mean over tokens alone: `grpo` here.

    Try: `bough train 'dapo(limit_tokens=13)' --on sokoban`

    Args:
        world: The world.
        low: Distance of the lower bound below 1.
        high: Distance of the upper bound above 1.
        limit_tokens: Sampled tokens of a path with the full penalty; 0 for the most of a path in the world.
    """
    limit = limit_tokens or world.max_path_tokens
    return world.run(
        rewards=(*world.rewards, Overlong(limit_tokens=limit, buffer_tokens=max(1, limit // 5))),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        max_sampling_rounds=10,
        objective=PpoClip(low=low, high=high),
        normalizer=Normalizer(by="path_tokens"),
    )
