"""REC on FrozenLake in text: group-relative REINFORCE that leaves out what has moved too far.

Paper: Group-Relative REINFORCE Is Secretly an Off-Policy Algorithm (arXiv 2509.24203). Assumes several paths of each
task, of a policy that may be old: four optimizer steps a batch make the later ones off-policy here. One side of
the clip as a mask and no weight is the paper's REC-OneSide-NoIS. Released code (Trinity-RFT) ends with an error at a
group of one, which gets nothing here. The learning rate is that of grpo_frozenlake, for a tiny model that learns from
scratch.
"""

from dataclasses import replace

from bough.credit import rec
from bough.objective import Rec
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="rec_frozenlake",
        credit=rec(),
        objective=Rec(keep="one_side"),
        optimizer=replace(base.optimizer, minibatches=4),
    )
