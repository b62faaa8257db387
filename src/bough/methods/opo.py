"""OPO (arXiv 2505.23585)."""

from dataclasses import replace

from bough import credit
from bough.train import Run, World


def opo(world: World) -> Run:
    """OPO (arXiv 2505.23585): exactly on-policy updates against the baseline of least variance.

    Assumes several paths of each task, whose lengths the policy decides: the baseline weights returns by length. One
    optimizer step for each batch, without divergence and entropy bonus, as in the paper; the ratio is 1 and the clip
    has no effect.
    """
    return world.run(credit=credit.opo(), regularizers=(), optimizer=replace(world.optimizer, minibatches=1))
