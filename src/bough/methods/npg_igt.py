"""N-PG-IGT (arXiv 2302.01734)."""

from dataclasses import replace

from bough.train import Run, World


def npg_igt(world: World, *, step: float = 0.01, igt_weight: float = 0.3) -> Run:
    """N-PG-IGT (arXiv 2302.01734): GRPO by steps of fixed length along a mean of extrapolated gradients.

    Assumes nothing of the environment. `step` is the length of an update in the space of all weights; steps of 0.05
    undo a warm-up of `Tiny`. The paper has single paths without a baseline, on control tasks. The weights that are
    sampled, saved and evaluated are the extrapolated ones; the released code evaluates the iterate. One update for each
    batch. `n_harpg` is the paper's Hessian-aided method.
    """
    optimizer = replace(
        world.optimizer, momentum="igt", learning_rate=step, igt_weight=igt_weight, epochs=1, minibatches=1
    )
    return world.run(optimizer=optimizer)
