"""TP-LLaMA (arXiv 2406.07115)."""

from bough import objective
from bough.credit import Process
from bough.methods.mcts_dpo import mcts_dpo
from bough.train import Run, World


def tp_llama(world: World, *, simulations: int = 64, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """TP-LLaMA (arXiv 2406.07115): at each fork actions that lead to success over siblings that do not.

    Assumes an environment that can step a state twice. The paper's trees are of a depth-first search over tools; here
    of a search by rollouts. The reference is the policy at the start of a round.
    """
    run = mcts_dpo(world, simulations=simulations, rounds=rounds, batch_tasks=batch_tasks)
    return run.replace(credit=Process(label="hard"), objective=objective.tp_llama())
