"""Learning rates as a function of the number of updates done."""

import math
from typing import Literal


def scale(schedule: Literal["constant", "linear", "cosine"], update: int, warmup: int, total: int) -> float:
    """The factor on the peak learning rate at `update` (0 is the first) of `total`, in (0, 1].

    Rises linearly over `warmup` updates, then stays, or falls so that it would reach zero at update `total`.
    """
    if update < warmup:
        return (update + 1) / (warmup + 1)
    done = min(1.0, (update - warmup) / max(1, total - warmup))
    if schedule == "linear":
        return max(1.0 - done, 1e-8)
    if schedule == "cosine":
        return max(0.5 * (1.0 + math.cos(math.pi * done)), 1e-8)
    return 1.0
