"""The training tasks of a batch: every pass over the pool in its own order, or by the weights of hooks."""

from collections.abc import Sequence

import numpy as np

from bough.tree import Floats, Task, derive


def next_tasks(pool: Sequence[Task], weights: Floats | None, first: int, count: int, seed: int) -> list[Task]:
    """The next batch of a pool.

    Args:
        pool: The training tasks.
        weights: [pool] their sampling weights, with the sum 1; None for passes over the pool.
        first: Number of tasks drawn before.
        count: Size of the batch.
        seed: Seed of the run.
    """
    size = len(pool)
    if weights is not None:
        generator = np.random.default_rng(derive(seed, "draw", first))
        return [pool[place] for place in generator.choice(size, count, replace=False, p=weights).tolist()]
    places = range(first, first + count)
    epochs = {place // size for place in places}
    orders = {epoch: np.random.default_rng(derive(seed, "order", epoch)).permutation(size).tolist() for epoch in epochs}
    return [pool[orders[place // size][place % size]] for place in places]
