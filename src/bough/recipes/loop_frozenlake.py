"""LOOP on FrozenLake in text: leave-one-out over episodes, a tight clip, no critic, no reference.

Paper: Reinforcement Learning for Long-Horizon Interactive LLM Agents (arXiv 2502.01600), on AppWorld. Assumes several
paths of each task and returns of at least 0, where the authors' code cuts them off. From the paper: 6 paths a task, two
passes over each batch, a mean within each path and then over paths, no path with an advantage below 0.01, a clip of
0.1. In the released code (apple/ml-loop) the lower bound is 1 / 1.1 rather than 0.9, and so it is here. The gradient's
norm and the learning rate are those of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.credit import loop
from bough.curate import SmallAdvantage
from bough.explore import Chains
from bough.objective import Normalizer, loop_clip
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="loop_frozenlake",
        explorer=Chains(n=6),
        credit=loop(),
        admit=(SmallAdvantage(threshold=0.01),),
        objective=loop_clip(),
        share=Normalizer(by="paths"),
        optimizer=replace(base.optimizer, epochs=2),
    )
