"""MedS3 (arXiv 2501.12051)."""

from dataclasses import replace

from bough.credit import Filtered, Process
from bough.methods.alpha_math import alpha_math
from bough.search import Descend, MeanBackup, Uct
from bough.searches.mcts import mcts
from bough.train import Run, World


def med_s3(
    world: World,
    *,
    simulations: int = 40,
    rollouts: int = 20,
    drop: float = 1.0,
    rounds: int = 3,
    batch_tasks: int = 256,
) -> Run:
    """MedS3 (arXiv 2501.12051): a policy and a process reward model evolve by tree search; answers by weighted vote.

    Assumes an environment that can step a state twice. A step of the run is a round: a Monte-Carlo tree search in which
    a node's value is the share of `rollouts` that succeed, then six passes. The policy imitates at most two successful
    paths of a task. A value head, the process reward model, learns of each turn the share of paths through it that
    succeed, less `drop` times its fall since the turn before. It then selects answers by a vote (PRM-guided Vote-Sum):

        bough search RUN 'BestOf(n=16, judge=CriticValue(of=action), vote=true, stop_value=null)'

    The paper simulates with a prompt for a direct answer, rewrites wrong ends once, and also trains the policy on pairs
    of paths; here simulations are the policy's own turns, and it only imitates. `simulations` could not be checked.
    """
    search = mcts(width=3, rollouts=rollouts, simulations=simulations, revisit=False)
    return alpha_math(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=replace(search, select=Descend(by=Uct(c=2.0), revisit=False), backup=MeanBackup(own=False)),
        credit=Filtered(max_paths=2, value_targets=Process(drop=drop, head="value", target="action")),
    )
