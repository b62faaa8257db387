"""TP-LLaMA on Sokoban in text: at each fork what leads to success over every sibling that failed.

Paper: TP-LLaMA (arXiv 2406.07115), from trees of a depth-first search over tools; here the trees are of a search by
rollouts. Assumes an environment that can be stepped from the same state twice. The reference is the policy as a round
begins.
"""

from dataclasses import replace

from bough.credit import Process
from bough.explore import Limits
from bough.explore.search import mcts
from bough.objective import tp_llama
from bough.recipes import grpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_sokoban.run()
    return replace(
        base,
        name="tp_llama_sokoban",
        explorer=mcts(width=4),
        limits=Limits(turns=5, tree_turns=60),
        credit=Process(label="hard"),
        objective=tp_llama(),
        optimizer=replace(base.optimizer, epochs=4, warmup_steps=0),
        reference="step",
        steps=3,
        batch_tasks=64,
        heldout=replace(base.heldout, every=1),
    )
