"""Step-DPO (arXiv 2406.18629)."""

from dataclasses import replace

from bough import objective
from bough.curate import NonZeroAdvantage
from bough.explore import Forks
from bough.train import Run, World


def step_dpo(world: World) -> Run:
    """Step-DPO (arXiv 2406.18629): at a fork of the tree the best next action over the worst.

    Assumes an environment that can step a state twice. Pairs are siblings of a tree, as in MCTS-DPO (2405.00451). The
    value of an action is the mean advantage of its paths. Trees grow as in Tree-GRPO (2509.21240), with eight paths a
    task. They have few forks with different actions, so a batch is one optimizer step at 0.4 of the world's learning
    rate.
    """
    return world.run(
        explorer=Forks(),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        objective=objective.step_dpo(),
        optimizer=replace(world.optimizer, learning_rate=0.4 * world.optimizer.learning_rate, minibatches=1),
    )
