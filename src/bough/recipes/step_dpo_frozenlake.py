"""Step-DPO on FrozenLake in text: where a tree forks, the best next action over the worst.

Paper: Step-DPO (arXiv 2406.18629); pairs of siblings from a tree as in MCTS-DPO (2405.00451), which takes the second
best for the loser (`mcts_dpo`). An action is worth the mean advantage of the paths through it. Assumes an environment
that can be stepped from the same state twice. Beta is .1; the growth is that of Tree-GRPO (2509.21240), eight paths a
task. Such a tree has few forks with different actions, so that a batch is one optimizer step and the learning rate
less than half of that of grpo_frozenlake; the paper's, for a pretrained model, is 5e-7.
"""

from dataclasses import replace

from bough.curate import Signal
from bough.explore import Forks
from bough.objective import step_dpo
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="step_dpo_frozenlake",
        explorer=Forks(),
        admit=(Signal(),),
        objective=step_dpo(),
        optimizer=replace(base.optimizer, learning_rate=2e-4, minibatches=1),
    )
