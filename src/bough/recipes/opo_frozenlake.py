"""OPO on FrozenLake in text: exactly on-policy steps against the baseline of least variance.

Paper: On-Policy RL with Optimal Reward Baseline (arXiv 2505.23585). Assumes several paths of each task whose length is
what the policy makes of it; the baseline weighs returns by it. One optimizer step a batch and neither divergence nor
entropy bonus in the loss, as in the paper: the ratio is then 1 and the clip without effect. The learning rate is that
of grpo_frozenlake, for a tiny model that learns from scratch.
"""

from dataclasses import replace

from bough.credit import opo
from bough.objective import PpoClip
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="opo_frozenlake",
        credit=opo(),
        objective=PpoClip(),
        optimizer=replace(base.optimizer, minibatches=1),
    )
