"""MCTS-DPO (arXiv 2405.00451)."""

from dataclasses import replace

from bough import objective
from bough.credit import Searched
from bough.searches.mcts import mcts
from bough.train import Run, World


def mcts_dpo(world: World, *, simulations: int = 64, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """MCTS-DPO (arXiv 2405.00451): a search's best action over the second best, with confidence by their visits.

    Assumes an environment that can step a state twice. A step of the run is a round: a search of `batch_tasks` tasks,
    then four passes. 64 simulations are those of the paper's scripts. Values are means of rollouts; the paper's are the
    model's evaluation of itself. The reference is the policy at the start of a round.
    """
    return world.run(
        explorer=mcts(width=4, simulations=simulations),
        credit=Searched(),
        objective=objective.mcts_dpo(),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0),
        reference="step",
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
