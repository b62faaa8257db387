"""TP-LLaMA on Sokoban in text: at each fork what leads to success over every sibling that failed.

Paper: TP-LLaMA (arXiv 2406.07115), from trees of a depth-first search over tools; here the trees are of a search by
rollouts. Assumes an environment that can be stepped from the same state twice. The reference is the policy as a round
begins.
"""

from dataclasses import replace

from bough.credit import Process
from bough.objective import tp_llama
from bough.recipes import mcts_dpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        mcts_dpo_sokoban.run(),
        name="tp_llama_sokoban",
        credit=Process(label="hard"),
        objective=tp_llama(),
    )
