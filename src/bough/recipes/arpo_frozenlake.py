"""ARPO on FrozenLake in text: GRPO over the paths of a tree, which share what was before their fork.

Paper: ARPO (arXiv 2507.19849). Assumes an environment that can step a state twice; FrozenLake's states are values, so
branching is free. Soft attribution is the paper's: what paths share gets what each of them says. The paper forks after
a tool's answer where the entropy has risen, half of 16 paths; here random turns are forked, 6 of 8 paths. It has no
divergence, and a learning rate of 1e-6; both are those of grpo_frozenlake here, as a model this small learns from
scratch. In the released code the entropy that a rise is measured against is left over from the batch before.
"""

from dataclasses import replace

from bough.credit import Arpo
from bough.explore import Forks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="arpo_frozenlake",
        explorer=Forks(chains=2, draws=3),
        credit=Arpo(),
    )
