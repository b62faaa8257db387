"""StarWM (arXiv 2602.14857)."""

from bough.objective import PpoClip, SftMix, add
from bough.rewrite import PredictObservations
from bough.train import Demonstrations, Run, World


def starwm(world: World, *, mu: float = 0.5, per_tree: int = 4) -> Run:
    """StarWM (arXiv 2602.14857): a loss on observations makes the policy a world model, beside GRPO.

    Assumes observations that follow from the past, in texts short enough for the model's context. Each step imitates
    the real observations of its own trees as answers to the world model's questions, with weight `mu`; the rest of the
    loss is GRPO's. With `mu=1` only the world model is trained, as in the paper, where it is a separate model and the
    policy is not trained. `StarWm` then searches with it: generate, simulate, refine.

    Try: `bough train starwm --on sokoban`
    Try: `bough search runs/grpo_sokoban 'StarWm(expand=SimulateAndRefine(role=world))'
    models.world='FrozenCheckpoint(run=runs/starwm_sokoban)'`

    Args:
        world: The world.
        mu: Weight of the world model's loss, in [0, 1].
        per_tree: Most observations of a tree.
    """
    return world.run(
        objective=SftMix(objective=add(PpoClip(), world.regularizers), mu=mu),
        regularizers=(),
        demonstrations=Demonstrations(revise=PredictObservations(per_tree=per_tree)),
    )
