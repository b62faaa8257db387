"""Stratified GRPO on FrozenLake in text: paths are compared with those of as many turns.

Paper: Stratified GRPO (arXiv 2510.06214), on agents that search. Assumes that paths of different structure are not
comparable: the paper's strata are the numbers of search calls, here those of turns, as there is nothing else to count.
Since a short path here is one that fell through the ice or went straight to the goal, strata are small, and the blend
with the whole task's comparison does much of the work; 0.8 of the stratum is a choice, the authors' code was not found.
The loss and its numbers are those of grpo_frozenlake.
"""

from dataclasses import replace

from bough.credit import StratifiedGrpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="stratified_grpo_frozenlake",
        credit=StratifiedGrpo(blend=0.8),
    )
