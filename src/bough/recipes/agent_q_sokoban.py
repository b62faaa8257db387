"""Agent Q on Sokoban in text: pairs of actions from a search, learned against what was logged, with no other model.

Experimental: the paper's details could not be checked. Paper: Agent Q (arXiv 2408.07199), whose search mixes a critic's
ranking of proposals into its values; here values are means of 64 rollouts alone. Assumes an environment that can be
stepped from the same state twice. The log-probabilities of the actions when they were sampled are the reference.
"""

from dataclasses import replace

from bough.objective import agent_q_dpo
from bough.recipes import mcts_dpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        mcts_dpo_sokoban.run(),
        name="agent_q_sokoban",
        objective=agent_q_dpo(),
        reference="start",
    )
