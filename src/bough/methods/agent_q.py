"""Agent Q (arXiv 2408.07199)."""

from bough.methods.mcts_dpo import mcts_dpo
from bough.objective import agent_q_dpo
from bough.train import Run, World


def agent_q(world: World, *, simulations: int = 64, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """Agent Q (arXiv 2408.07199): MCTS-DPO against the log-probabilities that the actions were sampled with.

    Assumes an environment that can step a state twice. Experimental: the paper's details could not be checked. The
    paper mixes a critic's ranking of proposals into the values; here values are means of rollouts.
    """
    run = mcts_dpo(world, simulations=simulations, rounds=rounds, batch_tasks=batch_tasks)
    return run.replace(objective=agent_q_dpo(), reference="start")
