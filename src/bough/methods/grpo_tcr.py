"""GRPO-TCR (arXiv 2510.11701)."""

from dataclasses import replace

from bough.objective import Entropy, Normalizer, PpoClip
from bough.reward import Overlong
from bough.train import Run, World


def grpo_tcr(
    world: World,
    *,
    trajectories: str = "",
    low: float = 0.2,
    high: float = 0.28,
    entropy: float = 0.001,
    limit_tokens: int = 0,
) -> Run:
    """GRPO-TCR (Demystifying agentic RL, arXiv 2510.11701): token mean, wide upper clip, penalty on long paths.

    Assumes several paths of each task. The recipe of the paper: a warm-up on whole trajectories of a stronger agent in
    the real environment rather than on stitched ones; then GRPO with the mean over tokens, a wider upper clip, DAPO's
    soft limit of length and enough entropy. `trajectories` is a file of conversations (`Warmup.file`), such as the ones
    that `bough export --what conversations` writes of a search or of another run; failed ones are left out. Without it
    the warm-up is the world's. Entropy is kept up by the upper clip, and here also by a bonus; the paper finds what
    bound suits a model by trial. The divergence of the world is dropped.

        bough search runs/grpo_sokoban 'BestOf(n=8)' evaluation.tasks='Tasks(split=train,count=200)' --out found
        bough export runs/grpo_sokoban --out good.jsonl --what conversations --trees found/trees
        bough train 'grpo_tcr(trajectories=good.jsonl)' --on sokoban

    Try: `bough train 'grpo_tcr(limit_tokens=13)' --on sokoban`

    Args:
        world: The world.
        trajectories: A file of conversations; "" for the world's warm-up.
        low: Distance of the lower bound below 1.
        high: Distance of the upper bound above 1.
        entropy: Coefficient of the bonus on entropy; 0 for none.
        limit_tokens: Sampled tokens of a path with the full penalty, of which the last fifth is the buffer; 0 for the
            most of a path in the world, which paths of short actions do not come near.
    """
    limit = limit_tokens or world.max_path_tokens
    warmup = replace(world.warmup, demonstrations=0, file=trajectories) if trajectories else world.warmup
    return world.run(
        warmup=warmup,
        rewards=(*world.rewards, Overlong(limit_tokens=limit, buffer_tokens=max(1, limit // 5))),
        regularizers=(Entropy(coefficient=entropy),) if entropy else (),
        objective=PpoClip(low=low, high=high),
        normalizer=Normalizer(by="path_tokens"),
    )
