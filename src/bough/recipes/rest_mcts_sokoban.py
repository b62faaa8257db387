"""ReST-MCTS* on Sokoban in text: values of steps from their distance to success, and imitation of what succeeded.

Paper: ReST-MCTS* (arXiv 2406.03816). A round is a search of 256 rooms by rollouts of the policy; then the policy
imitates the shortest good paths of each, and a value head learns the inferred value of each place. Assumes an
environment that can be stepped from the same state twice. The paper's search is guided by the value model from its
second round on; take `evaluate=CriticValue()` for that.
"""

from dataclasses import replace

from bough.credit import Filtered, RestMcts
from bough.explore import Limits
from bough.explore.search import mcts
from bough.objective import Imitation, Sum, ValueClip
from bough.policy import ValueHead
from bough.recipes import grpo_sokoban
from bough.train import Optimizer, Run, Saving


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_sokoban.run()
    return replace(
        base,
        name="rest_mcts_sokoban",
        explorer=mcts(width=4),
        limits=Limits(turns=5, tree_turns=60),
        critic=ValueHead(),
        credit=Filtered(most=2, goals=RestMcts(head="value")),
        objective=Sum(terms=(Imitation(), ValueClip(clip=None))),
        optimizer=Optimizer(learning_rate=1e-3, schedule="linear", warmup_steps=10, epochs=6, parts=24),
        steps=3,
        batch_tasks=256,
        heldout=replace(base.heldout, every=1),
        saving=Saving(every=1, as_grown=True),
    )
