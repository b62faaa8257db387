"""N-HARPG (arXiv 2302.01734)."""

from dataclasses import replace

from bough.train import Run, World


def n_harpg(world: World, *, step: float = 0.01, weight: float = 0.3) -> Run:
    """N-HARPG (arXiv 2302.01734): GRPO by steps of fixed length along a mean of gradients that the Hessian corrects.

    Assumes nothing of the environment. Every other batch is sampled between the last two iterates, and its
    Hessian-vector product carries the mean of past gradients along; `npg_igt` extrapolates instead. `step` is the
    length of an update in the space of all weights, `weight` the minimum weight of the newest gradient. The paper
    samples both batches in one iteration, has single paths without a baseline, on control tasks, and differentiates
    twice; here the product is a central difference of two gradients, since tree attention cannot be differentiated
    twice. Half of the steps thus move the weights. See `bough.learner.harpg` for the errors of the released code.
    """
    optimizer = replace(
        world.optimizer, momentum="harpg", learning_rate=step, igt_weight=weight, epochs=1, minibatches=1
    )
    return world.run(optimizer=optimizer)
