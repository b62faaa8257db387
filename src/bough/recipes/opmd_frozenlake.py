"""Policy mirror descent on FrozenLake in text: the return minus the mean, REINFORCE without ratio or clip.

Paper: Kimi k1.5 (arXiv 2501.12599), in the simple form of Trinity-RFT (2505.17826). Assumes several paths of each task,
drawn by a policy not far from the one that learns: here two optimizer steps a batch. The temperature of 1 is Trinity's;
it scales the loss. A path that is alone in its group keeps its return there, and gets nothing here. The learning rate
is that of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.credit import OpmdBaseline
from bough.objective import Opmd
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="opmd_frozenlake",
        credit=OpmdBaseline(),
        objective=Opmd(temperature=1.0),
    )
