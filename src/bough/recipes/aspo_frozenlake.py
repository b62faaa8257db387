"""ASPO on FrozenLake in text: solved paths gain a little by acting sensibly early.

Paper: Understanding Tool-Integrated Reasoning (arXiv 2508.19201), where what is to come early is the first run of code.
Assumes a mark on turns and knowledge of success. There is no code here, so that the mark is the first action that the
environment understands. The weights -2 and 0.7 are the paper's. The authors' code was not found; the loss and its
numbers are those of grpo_frozenlake, where the paper trains by DAPO, without a divergence.
"""

from dataclasses import replace

from bough.credit import Aspo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="aspo_frozenlake",
        credit=Aspo(mark="valid"),
    )
