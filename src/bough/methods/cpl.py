"""CPL (arXiv 2409.08642)."""

from bough.credit import Searched
from bough.critics import ValueHead
from bough.methods.mcts_dpo import mcts_dpo
from bough.objective import StepApo, Sum, ValueClip
from bough.searches.puct import puct
from bough.train import Run, World


def cpl(world: World, *, simulations: int = 200, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """CPL with Step-APO (arXiv 2409.08642): preferences between actions of a search, with a margin by their values.

    Assumes an environment that can step a state twice. Beta 0.3, alpha 1 and 200 simulations, those of the first round,
    are the paper's; its steps are those of a plan. Success is worth 1 and failure -1. A value head learns the values of
    the search, which it guides. The reference is the policy at the start of a round.
    """
    return mcts_dpo(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=puct(width=3, simulations=simulations, revisit=False),
        critic=ValueHead(),
        credit=Searched(relative=False, head="value"),
        objective=Sum(terms=(StepApo(), ValueClip(clip=None))),
    )
