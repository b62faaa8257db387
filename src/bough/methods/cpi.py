"""Agnostic RL by conservative policy iteration (arXiv 2507.04406)."""

from bough.credit import ConservativeMixture
from bough.explore import FullTree
from bough.objective import Imitation, Normalizer
from bough.train import Run, World


def cpi(world: World, *, eta: float = 0.3, width: int = 3, depth: int = 2) -> Run:
    """Agnostic RL (arXiv 2507.04406): conservative policy iteration, small steps to the greedy policy of each state.

    Assumes an environment that can step a state twice. Agnostic means that the best policy may be none of the model's:
    the aim is the best one that it can be. The paper shows that conservative policy iteration reaches it, at a rate of
    1 / steps, with exact mixtures and greedy steps within a convex class in which the return rises toward a better
    policy from every other one. A network is no convex class, so this is not proven here, and no earlier policy is kept
    for the mixture: the model imitates it. What holds: the imitation's minimum over all policies is the mixture, and
    where every state has its own parameters, a small share `eta` of the greedy policy does not lower the return.
    Without the condition on the class conservative policy iteration can end at a policy that is far from its best.

    Args:
        world: One whose states can be stepped twice.
        eta: Share of the greedy policy in a step.
        width: Actions sampled in a state.
        depth: Levels of a tree with `width` actions.
    """
    return world.run(
        explorer=FullTree(width=width, depth=depth),
        credit=ConservativeMixture(eta=eta),
        objective=Imitation(),
        normalizer=Normalizer(by="unique_tokens"),
        regularizers=(),
    )
