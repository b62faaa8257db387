"""TreePO on FrozenLake in text: a path is compared at each place that it came by.

Paper: TreePO (arXiv 2508.17445). Assumes an environment that can step a state twice; FrozenLake's states are values, so
branching is free. The average over places and the whitening of the batch are those of the released script. The paper
doubles every path at each segment of 512 tokens within a budget; here random turns are forked. Its clip of 0.2 and 0.28
is that of grpo_frozenlake, which adds a divergence that the paper has not. The learning rate is that of
grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6. The released code cuts
segments within, which its own segments are then out of step with.
"""

from dataclasses import replace

from bough.credit import TreePo
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="treepo_frozenlake",
        explorer=Forks(chains=2, draws=3),
        credit=TreePo(),
    )
