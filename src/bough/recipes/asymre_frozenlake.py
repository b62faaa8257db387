"""AsymRE on FrozenLake in text: REINFORCE on slightly old samples, against a lowered baseline.

Paper: Asymmetric REINFORCE for off-policy reinforcement learning (arXiv 2506.20520). Assumes several paths of each
task, of a policy that may be old: four optimizer steps a batch make the later ones off-policy here. No ratio, no clip,
no divergence. The shift of -0.1 is that of Trinity-RFT, where a path that is alone in its group keeps its return; here
it gets nothing. The learning rate is that of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.credit import AsymRe
from bough.objective import Rec
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="asymre_frozenlake",
        credit=AsymRe(shift=-0.1),
        objective=Rec(keep="none"),
        optimizer=replace(base.optimizer, minibatches=4),
    )
