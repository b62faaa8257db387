"""Learning rates as a function of the updates done and of those scheduled."""

import math
from typing import Literal


def scale(
    schedule: Literal["constant", "linear", "cosine"],
    update: int,
    warmup: int,
    total: int,
    scheduled_update: int | None = None,
) -> float:
    """The factor on the peak learning rate at `update` (0 is the first) of `total`, in (0, 1].

    Rises linearly over `warmup` updates, from 1 / (warmup + 1) at the first. Then it stays, or falls so that it would
    reach zero at update `total`.

    Args:
        schedule: The shape after the rise.
        update: Number of updates done.
        warmup: Number of updates of the rise.
        total: Number of updates of the whole run, if no step skips its update.
        scheduled_update: Number of updates up to here, if no step had skipped its update; None for `update`.
    """
    rise = min(1.0, (update + 1) / (warmup + 1))
    scheduled = update if scheduled_update is None else scheduled_update
    done = min(1.0, max(0, scheduled - warmup) / max(1, total - warmup))
    fall = {"constant": 1.0, "linear": 1.0 - done, "cosine": 0.5 * (1.0 + math.cos(math.pi * done))}[schedule]
    return max(min(rise, fall), 1e-8)
