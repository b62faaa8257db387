"""Agent-RLVR on FrozenLake in text: where all attempts fall in, new ones are told the way, and are preferred.

Experimental: written from the abstract and a summary. Paper: Agent-RLVR (arXiv 2506.11425). Assumes several attempts at
each task, and an environment that can say what to do: the hint is the oracle's next move. The policy reads it before it
acts; what is learned from is the path without it, by DPO with beta .1, as preferred to the attempts that failed. Groups
in which some succeed alone make pairs of their own. This policy has never read a hint when training begins, so at first
it helps by chance; the paper's model understands what it is told. A batch is one optimizer step, so that a path and
what it is compared with are not dealt apart, and the learning rate is less than half of that of grpo_frozenlake, for a
tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.explore import Guided
from bough.objective import Dpo, Pairs
from bough.recipes import grpo_frozenlake
from bough.train import Experts, Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="guided_frozenlake",
        explorer=Guided(n=8, again=4),
        admit=(Signal(),),
        objective=Dpo(pairs=Pairs(choice="best_worst")),
        optimizer=replace(base.optimizer, learning_rate=2e-4, minibatches=1),
        experts=Experts(from_trees=True),
    )
