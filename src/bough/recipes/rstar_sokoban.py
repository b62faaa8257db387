"""rStar-Math's pairs on Sokoban in text: the two best actions of a place over its two worst.

Paper: rStar-Math (arXiv 2501.04519), where such pairs train a process preference model and the policy imitates the best
paths; here they train the policy itself. Assumes an environment that can be stepped from the same state twice. Success
is worth 1 and anything else -1, found by 48 rollouts a room, as in the paper; an ended path is not visited again. The
reference is the policy at the start of a round.
"""

from dataclasses import replace

from bough.explore.search import mcts
from bough.objective import rstar
from bough.recipes import mcts_dpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        mcts_dpo_sokoban.run(),
        name="rstar_sokoban",
        explorer=replace(mcts(width=4, simulations=48, revisit=False), lost=-1.0),
        objective=rstar(),
    )
