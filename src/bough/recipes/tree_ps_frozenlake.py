"""TreePS on FrozenLake in text: a move is worth the rise in the mean outcome of what goes on from it.

Experimental: the abstract and summaries of the paper were read. Paper: TreePS-RAG (arXiv 2601.06922). Assumes an
environment that can step a state twice; FrozenLake's states are values, so branching is free. Moves after which nothing
forks get no credit, so the more forks the better: 2 chains and two rounds of 3 forks each, 14 paths. The paper grows
its tree level by level and prunes what is alike. The learning rate is that of grpo_frozenlake: a model this small
learns from scratch, where papers tune large ones with 1e-6. No code was found.
"""

from dataclasses import replace

from bough.credit import TreePs
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="tree_ps_frozenlake",
        explorer=Forks(chains=2, draws=3, rounds=2),
        credit=TreePs(),
    )
