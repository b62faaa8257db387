"""LearNAT (arXiv 2504.02327)."""

from dataclasses import replace

from bough.credit import Searched
from bough.methods.mcts_dpo import mcts_dpo
from bough.objective import MarginDpo
from bough.searches.learnat import learnat as search_sub_queries
from bough.train import Run, World
from bough.worlds.sql import Sql


def learnat(world: World, *, simulations: int = 50, steps: int = 4, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """LearNAT (arXiv 2504.02327): a search over sub-queries, then DPO on steps with a margin by their values.

    Assumes an environment that can step a state twice. In `Sql` the agent decomposes a question into up to `steps`
    sub-queries before its answer, the warm-up imitates the decomposition of gold queries, and the search values and
    prunes queries by their syntax trees; other environments have the return of the path for a value. A step of the run
    is a round: a search of `batch_tasks` tasks, then four passes of margin-aware DPO over all pairs of siblings. 50
    simulations of at most 5 turns, c 1.41 and alpha 1 are the paper's. The reference is the policy at the start of a
    round. Needs the package sqlglot for `Sql`.

    Try: `bough train learnat --on sql`

    Args:
        world: With the environment `Sql`, or another one.
        simulations: Rounds of the search of a task.
        steps: Maximum number of queries before the answer, in `Sql`.
        rounds: Steps of the run.
        batch_tasks: Tasks of a round.
    """
    if isinstance(world.env, Sql):
        world = world.replace(
            env=replace(world.env, oracle="components", max_queries=steps, compares_syntax=True),
            limits=replace(world.limits, turns=steps + 1),
        )
    run = mcts_dpo(world, rounds=rounds, batch_tasks=batch_tasks)
    return run.replace(
        explorer=search_sub_queries(simulations=simulations), credit=Searched(relative=False), objective=MarginDpo()
    )
