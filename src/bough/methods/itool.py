"""iTool (arXiv 2501.09766)."""

from dataclasses import replace

from bough.credit import Searched
from bough.hooks import FailureSampling
from bough.objective import Pairs, SimPo
from bough.searches.mcts import mcts
from bough.train import Run, World


def itool(
    world: World, *, simulations: int = 24, rounds: int = 3, batch_tasks: int = 64, gap: float = 0.2, stages: int = 3
) -> Run:
    """iTool (arXiv 2501.09766): a warm-up from easy to hard, then rounds of search on tasks that the policy fails.

    Assumes an environment that can step a state twice. The warm-up's demonstrations are imitated in `stages`, the
    shortest first. A step of the run is a round: a search of `batch_tasks` tasks, drawn by the share of their paths
    that failed (`FailureSampling`), then passes of SimPO over pairs of actions at one node. A pair is the best value
    over the worst, `gap` or more apart. Beta 2.5, gamma 0.5 and three actions a node are the paper's.

    The paper searches fragments of one tool call, five iterations deep at most three, values them by overlap with the
    reference or by the model's own judgement, and drops pairs with similar texts; here a node is a turn, its value the
    mean of rollouts, and for that filter there is `bough export --max-overlap`.

    Args:
        world: The world.
        simulations: Simulations of a search.
        rounds: Number of rounds.
        batch_tasks: Tasks of a round.
        gap: Least difference of the values of a pair.
        stages: Parts of the warm-up.
    """  # noqa: D403 - the name of the paper
    return world.run(
        explorer=mcts(width=3, simulations=simulations),
        hooks=(FailureSampling(),),
        credit=Searched(),
        objective=SimPo(pairs=Pairs(unit="turn", gap=gap)),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0, learning_rate=world.optimizer.learning_rate / 4),
        warmup=replace(world.warmup, stages=stages),
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
