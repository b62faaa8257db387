"""rStar-Math (arXiv 2501.04519)."""

from dataclasses import replace

from bough.credit import Filtered, Searched
from bough.critics import ValueHead
from bough.methods.alpha_math import alpha_math
from bough.objective import Imitation, Sum, process_preference
from bough.objective.pairs import Below
from bough.search import CriticValue
from bough.searches.mcts import mcts
from bough.train import Run, World


def rstar(world: World, *, simulations: int = 48, rounds: int = 4, batch_tasks: int = 256, below: Below = "all") -> Run:
    """rStar-Math (arXiv 2501.04519): imitates a search's good paths; pairs of actions train a preference model.

    Assumes an environment that can step a state twice. A step of the run is a round: a search of `batch_tasks` tasks,
    then six passes. The policy imitates at most two successful paths of each task. A value head learns to rank a
    state's two best actions over its two worst, by the values of the search, and is the value of new nodes in the next
    round. Success is worth 1 and failure -1; 48 simulations and four rounds are the paper's. In the paper's first round
    nodes have no model's value, here that of an untrained head. The paper's model has weights of its own; here the head
    reads the policy's hidden states and does not train them. The environment executes each action, as code checks the
    paper's steps. Pairs are taken at all contexts, as in the release by default; `below="most_visited"` is its
    option "vis_count".

    Args:
        world: The world.
        simulations: Number of simulations of a search.
        rounds: Number of rounds.
        batch_tasks: Tasks of a round.
        below: The contexts with pairs; see `Pairs`.
    """
    return alpha_math(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=replace(
            mcts(width=4, simulations=simulations, revisit=False),
            evaluate=CriticValue(of="action"),
            failure_value=-1.0,
        ),
        critic=ValueHead(detach=True),
        credit=Filtered(max_paths=2, value_targets=Searched(head="value", target="action")),
        objective=Sum(terms=(Imitation(), process_preference(below=below))),
    )
