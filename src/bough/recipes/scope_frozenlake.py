"""SCOPE on FrozenLake in text: of a walk that ends in a hole, the good part is kept and the oracle walks on from there.

Experimental: written from the abstract. Paper: Recycling Failures (SCOPE, arXiv 2602.24110). Assumes an oracle and an
environment that can step a state twice. A step is wrong after which the oracle knows no way, where the paper asks a
process reward model; the oracle goes on, where the paper has a stronger model. Groups are mixed, GRPO compares failures
with what they were corrected to; the oracle's moves are imitated with a weight of .1, as in Trinity-RFT's mixture. How
the paper weighs them was not seen. Everything else is that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.explore import Astray, Correct
from bough.objective import SftMix
from bough.recipes import grpo_frozenlake
from bough.train import Experts, Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="scope_frozenlake",
        # A move against the edge costs a turn and spoils nothing.
        explorer=Correct(n=8, most=2, blame=Astray(invalid=False)),
        objective=SftMix(objective=base.objective, mu=0.1),
        experts=Experts(from_trees=True),
    )
