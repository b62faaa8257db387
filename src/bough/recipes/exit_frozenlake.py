"""ExIt on FrozenLake in text: half of the tasks are walks that someone began and that can still end either way.

Experimental: written from the abstract and summaries. Paper: Bootstrapping Task Spaces for Self-Improvement (arXiv
2509.04575). Assumes an environment in which the same actions lead to the same place. Of a group whose paths earn
differently, a random walk is cut at a random move and kept, with the variance of the returns for a priority. The paper
revises whole answers, and asks for different ones ("self-divergence"), which moves have no counterpart to. Everything
else is that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.curate import ExIt
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(grpo_frozenlake.run(), name="exit_frozenlake", advisers=(ExIt(),))
