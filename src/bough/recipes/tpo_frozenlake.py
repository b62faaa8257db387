"""TPO on FrozenLake in text: the paths of a task as one ranked list.

Paper: TPO (arXiv 2410.12854). Experimental: its weights are taken from LambdaRank, and its weights of steps need
hidden states, which no loss here sees. The released loss descends in the wrong direction. Assumes several paths of
each task; a list has more to say than pairs where returns have more than two values. Beta is .1, and the learning rate
that of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.objective import Tpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tpo_frozenlake",
        admit=(Signal(),),
        objective=Tpo(),
    )
