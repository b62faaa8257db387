"""ARPO on FrozenLake in text: forks where the policy became less sure, and GRPO over the paths of the tree.

Paper: ARPO (arXiv 2507.19849). Assumes an environment that can step a state twice, and entropies; FrozenLake's states
are values, so branching is free. Half of the paths begin at the prompt, as in the paper; there are 8 instead of 16.
Soft attribution is the paper's: what paths share gets what each of them says. It has no divergence, and a learning rate
of 1e-6; both are those of grpo_frozenlake here, as a model this small learns from scratch. In the released code the
entropy that a rise is measured against is left over from the batch before; here it is that of the path itself.
"""

from dataclasses import replace

from bough.credit import Arpo
from bough.explore import EntropyForks
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="arpo_frozenlake",
        explorer=EntropyForks(paths=8, chains=4),
        credit=Arpo(),
    )
