"""The training tasks of a batch: every pass over the pool in its own order, or by the weights of hooks."""

from collections.abc import Sequence

import numpy as np

from bough.train.trained import TrainedPolicy
from bough.tree import Floats, Task, derive


def next_tasks(
    pool: Sequence[Task], policies: Sequence[TrainedPolicy], first: int, count: int, seed: int
) -> list[Task]:
    """The next batch of a pool.

    Args:
        pool: The training tasks.
        policies: The policies in training, whose hooks may weigh the tasks.
        first: Number of tasks drawn before.
        count: Size of the batch.
        seed: Seed of the run.
    """
    weights, size = _weights(pool, policies), len(pool)
    if weights is not None:
        generator = np.random.default_rng(derive(seed, "draw", first))
        return [pool[place] for place in generator.choice(size, count, replace=False, p=weights).tolist()]
    places = range(first, first + count)
    epochs = {place // size for place in places}
    orders = {epoch: np.random.default_rng(derive(seed, "order", epoch)).permutation(size).tolist() for epoch in epochs}
    return [pool[orders[place // size][place % size]] for place in places]


def _weights(pool: Sequence[Task], policies: Sequence[TrainedPolicy]) -> Floats | None:
    """[n]: the normalised product of the weights by the hooks of all policies; None without any."""
    found = [each.hooks.weigh([each.role.task_name(task.id) for task in pool]) for each in policies]
    known = [weights for weights in found if weights is not None]
    if len(known) < 2:
        return next(iter(known), None)
    product = np.prod(known, axis=0)
    return product / product.sum()
