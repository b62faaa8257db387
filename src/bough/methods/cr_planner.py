"""CR-Planner (arXiv 2410.01428)."""

from collections.abc import Sequence
from dataclasses import replace

from bough.credit import Filtered, KindValues
from bough.methods.alpha_math import alpha_math
from bough.search import SampleKinds
from bough.searches.cr_planner import KINDS
from bough.searches.mcts import mcts
from bough.train import Run, World


def cr_planner(
    world: World,
    *,
    kinds: Sequence[str] = KINDS,
    width: int = 2,
    simulations: int = 40,
    rounds: int = 3,
    batch_tasks: int = 256,
) -> Run:
    """CR-Planner (arXiv 2410.01428): a critic learns the values of kinds of steps and of steps from a tree search.

    Assumes an environment that can step a state twice. A step of the run is a round: a Monte-Carlo tree search whose
    actions begin with each of the `kinds` (see the search `cr_planner`), then six passes over its values; the policy
    imitates the paths that succeeded. The paper trains its critics on pairs of siblings and keeps the policy as it is.
    The default kinds are the paper's; a world's own actions need others, as those of Sokoban:

    Try: `bough train 'cr_planner(kinds=[up,down,left,right])' --on sokoban`
    """
    search = mcts(width=1, simulations=simulations, revisit=False)
    return alpha_math(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=replace(search, expand=SampleKinds(kinds=tuple(kinds), width=width)),
        credit=Filtered(max_paths=2, value_targets=KindValues()),
    )
