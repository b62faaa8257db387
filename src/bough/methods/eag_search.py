"""EAG-RL's first stage (arXiv 2508.13579)."""

from dataclasses import replace

from bough.credit import Filtered
from bough.objective import Imitation
from bough.search import Judge, OracleValue
from bough.searches.mcts import mcts
from bough.train import Run, World


def eag_search(world: World, *, expert: str = "", simulations: int = 40, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """EAG-RL's search (arXiv 2508.13579): imitates the good paths of a tree search that an expert's values guide.

    Assumes an environment that can step a state twice, and an oracle or a model of the role `expert`. A step of the run
    is a round: a search of `batch_tasks` tasks, then four passes over at most two successful paths of each. The value
    of a state is 0.9 to the power of the turns of the oracle's plan; with `expert="expert"` and `models.expert=...` it
    is that model's judgement. The paper asks a model of medical records. `eag_rl` is the second stage, from the policy
    of this run: `--policy 'pretrained(runs/eag_search_sokoban/final)' warmup.demonstrations=0`.

    Args:
        world: Any that forks.
        expert: The role of the expert; "" for the oracle.
        simulations: Rounds of a search.
        rounds: Steps of the run.
        batch_tasks: Tasks of a round.
    """
    search = mcts(width=4, simulations=simulations, revisit=False)
    return world.run(
        explorer=replace(search, evaluate=Judge(role=expert) if expert else OracleValue()),
        credit=Filtered(max_paths=2),
        objective=Imitation(),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0),
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
