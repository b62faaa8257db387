"""ReST-MCTS* on Sokoban in text: values of steps from their distance to success, and imitation of what succeeded.

Paper: ReST-MCTS* (arXiv 2406.03816). A round is a search of 256 rooms by rollouts of the policy, 50 simulations each,
as in the released script for training data, where success does not end a search. Then the policy imitates the shortest
successful paths of each room, at most two, and a value head learns the inferred value of each place. Assumes an
environment that can be stepped from the same state twice. The paper's search is guided by the value model from its
second round on; take `evaluate=CriticValue()` for that.
"""

from dataclasses import replace

from bough.credit import Filtered, RestMcts
from bough.explore.search import mcts
from bough.recipes import alpha_math_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        alpha_math_sokoban.run(),
        name="rest_mcts_sokoban",
        explorer=mcts(width=4, simulations=50, revisit=False),
        credit=Filtered(most=2, value_targets=RestMcts(head="value")),
    )
