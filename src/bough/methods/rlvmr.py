"""RLVMR (arXiv 2507.22844)."""

from dataclasses import replace
from typing import Literal

from bough.context import TaggedThinking
from bough.credit import Rlvmr
from bough.objective import Kl
from bough.reward import Format, MetaReasoning
from bough.train import Run, World


def rlvmr(
    world: World,
    *,
    blend: float = 0.5,
    novelty: Literal["action", "state"] = "action",
    penalty: float = 0.1,
    every: int = 3,
    as_released: bool = False,
) -> Run:
    """RLVMR (arXiv 2507.22844): thoughts have tags, rules pay them, and turns with one tag are compared.

    Assumes actions in text, short enough to be written after a thought, and an oracle for the warm-up, whose
    demonstrations get tags by rules; the paper's were tagged by a larger model. The penalty for the format is part of
    the path's return; a `Format` of the world's own is kept in its place. The divergence replaces the world's
    regularizers.

    Try: `bough train rlvmr --on alfworld policy.context_tokens=2048`

    Args:
        world: A world whose parser is for texts.
        blend: Weight of the outcome against the rewards of thoughts, in [0, 1].
        novelty: What a thought with the tag "explore" is paid for: a new action, or a new state.
        penalty: Cost of an answer in another format.
        every: Turns of a plan in demonstrations.
        as_released: The advantage of the released code.
    """
    own = any(isinstance(each, Format) for each in world.rewards)
    return world.run(
        parser=TaggedThinking(every=every),
        sampling=replace(world.sampling, max_tokens=(every + 1) * world.sampling.max_tokens + 16),
        rewards=(*world.rewards, MetaReasoning(novelty=novelty), *(() if own else (Format(penalty=penalty),))),
        credit=Rlvmr(blend=blend, as_released=as_released),
        regularizers=(Kl(coefficient=0.01),),
    )
