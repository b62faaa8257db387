"""AlphaMath (arXiv 2405.03553)."""

from dataclasses import replace

from bough.credit import Filtered, Searched
from bough.critics import ValueHead
from bough.objective import Imitation, Sum, ValueClip
from bough.schedule import LinearSchedule
from bough.searches.puct import puct
from bough.train import Checkpointing, Run, World


def alpha_math(world: World, *, simulations: int = 40, rounds: int = 3, batch_tasks: int = 256) -> Run:
    """AlphaMath (arXiv 2405.03553): imitates the good paths of a search, and a value head learns the search's values.

    Assumes an environment that can step a state twice. A step of the run is a round: a search of `batch_tasks` tasks,
    then six passes over at most two paths of each. 40 simulations are the paper's, and so are values of 1 for success
    and -1 for failure. In the first round the critic is untrained, and the policy's priors guide the search.
    """
    optimizer = replace(
        world.optimizer,
        learning_rate=1e-3,
        schedule=LinearSchedule(start=1.0, end=0.0),
        warmup_steps=10,
        epochs=6,
        minibatches=24,
    )
    return world.run(
        explorer=puct(width=4, simulations=simulations, revisit=False),
        critic=ValueHead(),
        credit=Filtered(max_paths=2, value_targets=Searched(head="value")),
        objective=Sum(terms=(Imitation(), ValueClip(clip=None))),
        regularizers=(),
        optimizer=optimizer,
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
        checkpointing=Checkpointing(every=1, as_grown=True),
    )
