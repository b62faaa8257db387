"""MCTS-DPO on Sokoban in text: the action that a search finds best over the second best, trusted by their visits.

Paper: MCTS-DPO (arXiv 2405.00451): step-level preferences from a search, online. Assumes an environment that can be
stepped from the same state twice. Each room is searched by 64 simulations, as in the paper's scripts. Values are means
of rollouts; the paper's are a self-evaluation of the model. The reference is the policy at the start of a round.
"""

from dataclasses import replace

from bough.credit import Searched
from bough.explore import Limits
from bough.explore.search import mcts
from bough.objective import mcts_dpo
from bough.recipes import grpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_sokoban.run()
    return replace(
        base,
        name="mcts_dpo_sokoban",
        explorer=mcts(width=4, simulations=64),
        limits=Limits(turns=5),
        credit=Searched(),
        objective=mcts_dpo(),
        optimizer=replace(base.optimizer, epochs=4, warmup_steps=0),
        reference="step",
        steps=3,
        batch_tasks=64,
        heldout=replace(base.heldout, every=1),
    )
