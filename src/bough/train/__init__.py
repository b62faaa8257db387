"""Training: runs, the loop, updates, checkpoints. Names that need torch are imported on first use.

The package is also a function, `bough.train(run)`: see `bough.api`.
"""

from typing import TYPE_CHECKING

from bough.lazy import lazy_names, make_callable
from bough.learner import Optimizer
from bough.store.heldout import read_heldout
from bough.train.evaluation import HeldoutResult, measure
from bough.train.health import NoLearningSignal
from bough.train.run import Method, Run, World
from bough.train.settings import Checkpointing, Demonstrations, Evaluation, Execution, Health, Schedule, Tasks, Warmup
from bough.train.start import resume, start
from bough.train.stored_settings import load_run

if TYPE_CHECKING:
    from bough.train.runtime import Runtime
else:
    __getattr__ = lazy_names(__name__, {"bough.train.runtime": ("Runtime",)})

__all__ = [
    "Checkpointing",
    "Demonstrations",
    "Evaluation",
    "Execution",
    "Health",
    "HeldoutResult",
    "Method",
    "NoLearningSignal",
    "Optimizer",
    "Run",
    "Runtime",
    "Schedule",
    "Tasks",
    "Warmup",
    "World",
    "load_run",
    "measure",
    "read_heldout",
    "resume",
    "start",
]

make_callable(__name__)
