"""DialTree-RPO on FrozenLake in text: every move branches, and what is malformed or surplus is pruned.

Experimental: written from the abstract and a summary. Paper: DialTree-RPO (arXiv 2510.02286), on dialogues with a model
under test. Assumes an environment that can step a state twice. Each of the first 4 moves is written 3 times in every
live place, and at each level 8 are made: moves the environment knows come first. The leaves of a task are one group,
as in GRPO. The paper shields tokens of the answer's form from negative advantages by a rule that was not seen; a move
has no such tokens. Everything else is that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.explore import Levels, Proper
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="dialtree_frozenlake",
        explorer=Levels(width=3, depth=4, keep=8, quality=Proper()),
    )
