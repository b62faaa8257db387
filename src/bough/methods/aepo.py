"""AEPO (arXiv 2510.14545)."""

from dataclasses import replace

from bough.explore import EntropyForks
from bough.objective import Aepo
from bough.train import Run, World


def aepo(world: World, *, paths: int = 8, balance: float = 0.5, penalty: float = 0.05, epochs: int = 2) -> Run:
    """AEPO (arXiv 2510.14545): forks by entropy, larger weights for uncertain tokens, a gradient for clipped ones.

    Assumes an environment that can step a state twice, and entropies. Experimental: balance and penalty are from
    summaries of the paper and from re-implementations. The weight of 0.2, the bounds of 0.2 and 0.28 and the dual clip
    of 3 are the released code's; see `Aepo` for what that code does with clipped tokens. Nothing is clipped while the
    policy is the one that sampled: the balanced gradient acts from the second update of a batch on, hence `epochs`
    passes over it.
    """
    return world.run(
        explorer=EntropyForks(paths=paths, balance=balance, penalty=penalty),
        objective=Aepo(),
        optimizer=replace(world.optimizer, epochs=epochs),
    )
