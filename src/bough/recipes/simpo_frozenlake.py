"""SimPO on FrozenLake in text: paths that cross the lake over others by mean log-probability, with a margin.

Paper: SimPO (arXiv 2405.14734); beta 2.5 and gamma .5 as in iTool (2501.09766). Assumes several paths of each task.
There is no reference, so that nothing but the margin says when a pair is settled: the learning rate is a quarter of
that of grpo_frozenlake.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import Pairs, SimPo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="simpo_frozenlake",
        admit=(Signal(),),
        objective=SimPo(pairs=Pairs(choice="all")),
        optimizer=replace(base.optimizer, learning_rate=1.25e-4),
    )
