"""HGPO (arXiv 2602.22817)."""

from bough.context import Window
from bough.credit import Hgpo
from bough.train import Run, World


def hgpo(world: World, *, history: int = 2) -> Run:
    """HGPO (arXiv 2602.22817): compares turns taken in the same state, weighted by how much of their history is equal.

    Assumes states with keys that paths of a task share. The policy reads the present turn and the `history` turns
    before it, as many as are compared; the authors use 2 and 4. Discount 0.95 and linear weights are theirs; they also
    pay -0.1 for an invalid action (`InvalidAction`). The released code drops advantages of exactly 0
    (`Hgpo(as_released=True)`).
    """
    return world.run(context=Window(turns=history + 1), credit=Hgpo(history=history))
