"""The learner: computes gradients from batches and updates weights. Names that need torch are imported on first use."""

from typing import TYPE_CHECKING

from bough.lazy import lazy_names
from bough.learner.optimizer import Optimizer

if TYPE_CHECKING:
    from bough.learner.learner import Diverged, Learner
else:
    __getattr__ = lazy_names(__name__, {"bough.learner.learner": ("Diverged", "Learner")})

__all__ = ["Diverged", "Learner", "Optimizer"]
