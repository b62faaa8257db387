"""ST-PPO (arXiv 2511.20718)."""

from dataclasses import replace
from typing import Literal

from bough.credit import Gae, TurnPpo
from bough.methods.ppo import ppo
from bough.objective import ClippingBias, PpoClip, Sum, ValueClip
from bough.train import Run, World


def st_ppo(
    world: World,
    *,
    unit: Literal["turn", "token"] = "turn",
    corrected: bool = True,
    floor: float = 0.1,
    minibatches: int = 4,
) -> Run:
    """ST-PPO (arXiv 2511.20718): PPO with turn-level ratios, divided by the norm of what clipping removes.

    Assumes several updates on each batch, `minibatches`: tokens are clipped from the second update on, and the
    correction acts where the norm, the metric `policy/clipped_norm`, is above `floor`. On `sokoban` its mean over the
    four updates of a step was .03 to .7 in steps 2 to 16, in twelve of them above .1. With `corrected=False` it is the
    paper's Turn-PPO, with `unit="token"` S-PPO, with both token-level PPO. Experimental: see `ClippingBias`. In the
    paper a turn's advantage aggregates GAE's over its tokens; here the critic has one value for each turn, as in
    `turn_ppo`, with discount and lambda 1. One path of each task, as in `ppo`.
    """
    clipped = PpoClip(ratio=unit)
    return ppo(world).replace(
        credit=TurnPpo(discount=1.0, lam=1.0) if unit == "turn" else Gae(),
        objective=Sum(terms=(ClippingBias(objective=clipped, floor=floor) if corrected else clipped, ValueClip())),
        optimizer=replace(world.optimizer, minibatches=minibatches),
    )
