"""Agent Q on Sokoban in text: pairs of actions from a search, learned against what was logged, with no other model.

Experimental: the paper's details could not be checked. Paper: Agent Q (arXiv 2408.07199), whose search mixes a critic's
ranking of proposals into its values; here values are means of rollouts alone. Assumes an environment that can be
stepped from the same state twice. The log-probabilities of the actions when they were sampled are the reference.
"""

from dataclasses import replace

from bough.credit import Searched
from bough.explore import Limits
from bough.explore.search import mcts
from bough.objective import agent_q_dpo
from bough.recipes import grpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_sokoban.run()
    return replace(
        base,
        name="agent_q_sokoban",
        explorer=mcts(width=4),
        limits=Limits(turns=5, tree_turns=60),
        credit=Searched(),
        objective=agent_q_dpo(),
        optimizer=replace(base.optimizer, epochs=4, warmup_steps=0),
        steps=3,
        batch_tasks=64,
        heldout=replace(base.heldout, every=1),
    )
