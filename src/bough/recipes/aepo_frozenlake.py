"""AEPO on FrozenLake in text: entropy shares out the paths; undecided tokens weigh more, clipped ones keep a gradient.

Paper: Agentic Entropy-Balanced Policy Optimization (arXiv 2510.14545). Assumes an environment that can step a state
twice, and entropies. How many paths begin at the prompt depends on the entropy there and after observations, and a path
that was just forked is forked less (experimental: both are from summaries of the paper and re-implementations, with
their balance of .5 and penalty of .05). A weight of .2, bounds of .2 and .28, and 3 for the dual clip are those of
released code, of which one keeps the gradient of every clipped token that gains (`keep="all"`), and another, a
re-implementation, of the decided ones, the wrong way round (`keep="low"`). The divergence and the learning rate are
those of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.explore import EntropyForks
from bough.objective import Aepo, Kl, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="aepo_frozenlake",
        explorer=EntropyForks(paths=8, balance=0.5, penalty=0.05),
        objective=Sum(terms=(Aepo(), Kl(coefficient=0.04))),
    )
