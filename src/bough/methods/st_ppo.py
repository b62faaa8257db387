"""ST-PPO (arXiv 2511.20718)."""

from dataclasses import replace
from typing import Literal

from bough.credit import Gae, TurnPpo
from bough.methods.ppo import ppo
from bough.objective import ClippingBias, PpoClip, Sum, ValueClip
from bough.train import Run, World


def st_ppo(
    world: World, *, unit: Literal["turn", "token"] = "turn", corrected: bool = True, minibatches: int = 4
) -> Run:
    """ST-PPO (arXiv 2511.20718): PPO with turn-level ratios, divided by the norm of what clipping removes.

    Assumes several updates on each batch, `minibatches`: tokens are clipped from the second update on. With
    `corrected=False` it is the paper's Turn-PPO, with `unit="token"` S-PPO, with both token-level PPO. Experimental:
    see `ClippingBias`. In the paper a turn's advantage aggregates GAE's over its tokens; here the critic has one value
    for each turn, as in `turn_ppo`, with discount and lambda 1. One path of each task, as in `ppo`.
    """
    clipped = PpoClip(ratio=unit)
    return ppo(world).replace(
        credit=TurnPpo(discount=1.0, lam=1.0) if unit == "turn" else Gae(),
        objective=Sum(terms=(ClippingBias(objective=clipped) if corrected else clipped, ValueClip())),
        optimizer=replace(world.optimizer, minibatches=minibatches),
    )
