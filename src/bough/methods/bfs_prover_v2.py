"""BFS-Prover-V2 (arXiv 2509.06493)."""

from dataclasses import replace

from bough.credit import Filtered, PerplexityBand
from bough.objective import Imitation
from bough.searches.bfs_prover import bfs_prover
from bough.train import Run, World


def bfs_prover_v2(
    world: World, *, width: int = 4, expansions: int = 100, rounds: int = 3, batch_tasks: int = 64
) -> Run:
    """BFS-Prover-V2 (arXiv 2509.06493): expert iteration: imitates the middle of the perplexities of a search's turns.

    Assumes an environment that can step a state twice. A step of the run is a round: a best-first search by likelihood
    of up to `expansions` nodes on each of `batch_tasks` tasks, which ends at a success, then four passes over the turns
    that lead to it. Turns of very low and very high perplexity are not imitated (`PerplexityBand`). The search of the
    same name adds the planner, which the paper uses when it proves, not when it trains.

    The paper samples at a temperature of 1.3, and when rounds bring no more it trains the first weights again on a
    filtered set of all rounds; here each round continues from the last.
    """
    return world.run(
        explorer=replace(bfs_prover(width=width, alpha=2.0), rounds=expansions),
        credit=PerplexityBand(credit=Filtered()),
        objective=Imitation(),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0),
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
