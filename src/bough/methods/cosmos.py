"""COS(M+O)S (arXiv 2501.17104)."""

from dataclasses import replace

from bough.credit import Searched
from bough.objective import Orpo, Pairs
from bough.searches.cosmos import cosmos as cosmos_search
from bough.train import Run, World


def cosmos(world: World, *, simulations: int = 40, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """COS(M+O)S (arXiv 2501.17104): ORPO on the plot steps of highest curiosity, found by a tree search.

    Assumes an environment of free text that can step a state twice, such as the world `story`. A step of the run is a
    round: a search of each task by moderate surprisal, then four passes over pairs: the best next step by the search's
    values, over the worst one. The surprisal is that of the policy at the start of the round; a frozen model keeps the
    measure: `explorer='cosmos(role=reference)' models='{reference: FrozenCheckpoint(run=...)}'`. Experimental: the
    paper's value model and the number of simulations could not be checked.

    Try: `bough train cosmos --on story`
    """
    return world.run(
        explorer=cosmos_search(simulations=simulations),
        credit=Searched(relative=False),
        objective=Orpo(pairs=Pairs(unit="turn", choice="best_worst")),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0),
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
