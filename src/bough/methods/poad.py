"""POAD (arXiv 2405.15821)."""

from bough.credit import Poad
from bough.methods.ppo import ppo
from bough.train import Run, World


def poad(world: World) -> Run:
    """POAD (arXiv 2405.15821): token values, discounted between actions and not inside them.

    Assumes actions whose length does not depend on their value. Discount and lambda 0.95 and the clip of 0.2 are the
    released code's, which has a critic of its own model, decays by lambda inside actions too (`Poad(as_released=True)`)
    and whitens differently. One path of each task, as in `ppo`.
    """
    return ppo(world).replace(credit=Poad())
