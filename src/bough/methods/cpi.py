"""Agnostic RL by conservative policy iteration (arXiv 2507.04406)."""

from dataclasses import replace

from bough.credit import ConservativeMixture
from bough.explore import FullTree
from bough.objective import MixtureKl, Normalizer
from bough.train import Run, World


def cpi(
    world: World, *, eta: float = 0.3, width: int = 3, depth: int = 2, trunk: int | None = None, epochs: int = 4
) -> Run:
    """Agnostic RL (arXiv 2507.04406): conservative policy iteration, small steps to the greedy policy of each state.

    Assumes an environment that can step a state twice. Agnostic means that the best policy may be none of the model's:
    the aim is the best one that it can be. The paper shows that conservative policy iteration reaches it, at a rate of
    1 / steps, with exact mixtures and greedy steps within a convex class in which the return rises toward a better
    policy from every other one. A network is no convex class, so this is not proven here, and no earlier policy is kept
    for the mixture: `epochs` passes over a batch bring the model near the mixture (`MixtureKl`). What holds: the loss
    has its minimum over all policies at the mixture, and where every state has its own parameters, a small share `eta`
    of the greedy policy does not lower the return. Without the condition on the class conservative policy iteration can
    end at a policy that is far from its best. The window of `depth` forked turns begins after 0 to `trunk` turns, so
    the states of all turns have a greedy action.

    The paper has two more algorithms. Its policy mirror descent is `opmd` with a temperature; its steepest descent, in
    squared 1-norms of the policies, is not here.

    Measured on `sokoban` from a warmed policy, 40 steps, seed 0, with 300 held-out rooms (2 cores of an AMD EPYC,
    shared with other jobs): 40 % (35 to 46) before, 45 % (39 to 50) after, where `grpo` has 44 % (39 to 50).

    Args:
        world: One whose states can be stepped twice.
        eta: Share of the greedy policy in a step.
        width: Actions sampled in a state.
        depth: Levels of a tree with `width` actions.
        trunk: Most turns before the first fork; None for `limits.turns` of the world minus `depth`.
        epochs: Passes over a batch.
    """
    turns = max(0, world.max_turns - depth) if trunk is None else trunk
    return world.run(
        explorer=FullTree(width=width, depth=depth, trunk=turns),
        credit=ConservativeMixture(eta=eta),
        objective=MixtureKl(),
        normalizer=Normalizer(by="unique_tokens"),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=epochs),
    )
