"""Training: runs, the loop, updates, checkpoints. Names that need torch are imported on first use.

The package is also a function, `bough.train(run)`: see `bough.api`.
"""

from typing import TYPE_CHECKING

from bough.lazy import lazy_names, make_callable
from bough.train.config import ConfigError, dump, load
from bough.train.deadrun import DeadRun
from bough.train.heldout import Score, measure
from bough.train.journal import read_heldout
from bough.train.mine import Mined, mine
from bough.train.override import override
from bough.train.pair_filter import PairFilter
from bough.train.revise import Reader, Revise
from bough.train.run import EngineRecipe, Experts, Guards, Heldout, Optimizer, PolicyRecipe, Run, Saving, Tasks, Warmup
from bough.train.start import load_run, resume, start

if TYPE_CHECKING:
    from bough.train.learner import Diverged, Learner
    from bough.train.workshop import Workshop
else:
    __getattr__ = lazy_names(
        __name__, {"bough.train.learner": ("Diverged", "Learner"), "bough.train.workshop": ("Workshop",)}
    )

__all__ = [
    "PairFilter",
    "ConfigError",
    "DeadRun",
    "Diverged",
    "EngineRecipe",
    "Experts",
    "Guards",
    "Heldout",
    "Learner",
    "Mined",
    "Optimizer",
    "PolicyRecipe",
    "Reader",
    "Revise",
    "Run",
    "Saving",
    "Score",
    "Tasks",
    "Warmup",
    "Workshop",
    "dump",
    "load",
    "load_run",
    "measure",
    "mine",
    "override",
    "read_heldout",
    "resume",
    "start",
]

make_callable(__name__)
