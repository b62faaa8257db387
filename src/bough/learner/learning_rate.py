"""Learning rates as a function of the updates done and of those scheduled."""

from bough.varying import FloatOrSchedule, number_at


def scale(
    schedule: FloatOrSchedule,
    update: int,
    warmup: int,
    total: int,
    scheduled_update: int | None = None,
) -> float:
    """The factor on the peak learning rate at `update` (0 is the first) of `total`, above 0.

    Rises linearly over `warmup` updates, from 1 / (warmup + 1) at the first, to 1 or to a larger factor. Then it
    follows the schedule, whose end is update `total`.

    Args:
        schedule: The factor after the rise, by the progress from its end on.
        update: Number of updates done.
        warmup: Number of updates of the rise.
        total: Number of updates of the whole run, if no step skips its update.
        scheduled_update: Number of updates up to here, if no step had skipped its update; None for `update`.
    """
    rise = min(1.0, (update + 1) / (warmup + 1))
    scheduled = update if scheduled_update is None else scheduled_update
    done = min(1.0, max(0, scheduled - warmup) / max(1, total - warmup))
    factor = number_at(schedule, done)
    return max(min(rise * max(1.0, factor), factor), 1e-8)
