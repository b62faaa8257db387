"""Step-DPO on FrozenLake in text: where a tree forks, the best next action over the worst.

Paper: Step-DPO (arXiv 2406.18629); pairs of siblings from a tree as in MCTS-DPO (2405.00451), which takes the second
best for the loser (`mcts_dpo`). An action is worth the mean advantage of the paths through it. Assumes an environment
that can be stepped from the same state twice. Beta is .1; the growth is that of Tree-GRPO (2509.21240), eight paths a
task. The learning rate is that of grpo_frozenlake, for a tiny model that learns from scratch; the paper's is 5e-7.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.explore import Forks
from bough.objective import step_dpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="step_dpo_frozenlake",
        explorer=Forks(),
        admit=(Signal(),),
        objective=step_dpo(),
    )
