"""GSPO (arXiv 2507.18071)."""

from bough import objective
from bough.objective import Normalizer
from bough.train import Run, World


def gspo(world: World, *, low: float = 0.03, high: float = 0.04) -> Run:
    """GSPO (arXiv 2507.18071): one ratio for a whole path, the geometric mean of its tokens', clipped.

    Assumes several paths of each task, and engine log-probabilities equal to the learner's. The paper's bounds, 3e-4
    and 4e-4, are for answers of thousands of tokens and a learning rate of 1e-6. Paths of some thirty tokens and
    learning rates near 5e-4 move the mean ratio a hundred times as far, hence the defaults. The mean over paths is the
    paper's.
    """
    return world.run(objective=objective.gspo(low=low, high=high), normalizer=Normalizer(by="paths"))
