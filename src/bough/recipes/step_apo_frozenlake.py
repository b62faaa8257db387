"""Step-APO on FrozenLake in text: where a tree forks, good actions over bad ones, by a margin that is their gap.

Paper: CPL (arXiv 2409.08642), with values from a tree search over plans in two rounds; here an action is worth the
mean return of the paths through it against the task's mean, undivided, so that values lie in [-1, 1] as the paper's
do. Assumes an environment that can be stepped from the same state twice. Beta .3 and alpha 1 are the paper's; the
growth is that of Tree-GRPO (2509.21240). Such a tree has few forks with different actions, so that a batch is one
optimizer step and the learning rate less than half of that of grpo_frozenlake; the paper's, for a pretrained model, is
1e-6.
"""

from dataclasses import replace

from bough.credit import dr_grpo
from bough.curate import Signal
from bough.explore import Forks
from bough.objective import StepApo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="step_apo_frozenlake",
        explorer=Forks(),
        credit=dr_grpo(),
        admit=(Signal(),),
        objective=StepApo(),
        optimizer=replace(base.optimizer, learning_rate=2e-4, minibatches=1),
    )
