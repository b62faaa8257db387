"""GiGPO (arXiv 2505.10978)."""

from bough.credit import Gigpo
from bough.train import Run, World


def gigpo(world: World, *, discount: float = 0.95, weight: float = 1.0, similarity: float | None = None) -> Run:
    """GiGPO (arXiv 2505.10978): compares paths of a task, and turns taken in the same state.

    Assumes states with keys that paths of a task share; or with `similarity`, such as 0.95, observations of nearly the
    same text. Discount, weight and 8 paths a task are the paper's; it also pays -0.1 for an invalid action
    (`InvalidAction`). The released code takes statistics over turns, not paths (`Gigpo(as_released=True)`).
    """
    return world.run(credit=Gigpo(discount=discount, weight=weight, similarity=similarity))
