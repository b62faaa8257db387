"""Segment PO on FrozenLake in text: a stretch between forks is worth what it changed in the mean outcome.

Paper: SPO (arXiv 2505.23564). Assumes an environment that can step a state twice; FrozenLake's states are values, so
branching is free. The tree of the paper is full; here 4 chains are forked at random turns, in two rounds, 12 paths in
all. Tokens that were written with a probability above 0.9 get no credit, as in the paper. The learning rate is that of
grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6.
"""

from dataclasses import replace

from bough.credit import SegmentPo
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="segment_po_frozenlake",
        explorer=Forks(chains=4, draws=1, rounds=2),
        credit=SegmentPo(),
    )
