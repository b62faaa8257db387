"""MPS-Prover (arXiv 2505.10962)."""

from bough.credit import Filtered, RestMcts, UsefulTurns
from bough.methods.alpha_math import alpha_math
from bough.searches.mps_prover import mps_prover as search
from bough.train import Run, World


def mps_prover(world: World, *, width: int = 4, rounds: int = 3, batch_tasks: int = 256) -> Run:
    """MPS-Prover (arXiv 2505.10962): imitates a search by critic and rules, without redundant turns; learns a critic.

    Assumes an environment that can step a state twice, with state keys. A step of the run is a round: a search of
    `batch_tasks` tasks that ends at a success, then six passes. Turns on detours, of paths of one turn, and equal turns
    in equal states are imitated once or not at all (`UsefulTurns`). The critic learns values from the distance to
    success. Written from the abstract and summaries; the paper curates data once, after expert iteration.
    """
    return alpha_math(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=search(width=width),
        credit=UsefulTurns(credit=Filtered(value_targets=RestMcts(head="value"))),
    )
