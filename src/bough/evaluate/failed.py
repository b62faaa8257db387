"""The error of an evaluation in which every task failed."""

from collections.abc import Mapping

from bough.view import cause


class AllFailed(RuntimeError):
    """Every task failed, so there is no success rate. The message has the most frequent cause."""


def require_some(successes: Mapping[str, bool], failures: Mapping[str, str]) -> None:
    """Check that a success rate rests on at least one task.

    Args:
        successes: By task id, whether the task is solved; failed tasks are missing.
        failures: By id of each failed task, the cause.

    Raises:
        AllFailed: when `successes` is empty.
    """
    if not successes:
        raise AllFailed(
            f"got {len(failures)} tasks that all failed; need at least one that ends, for a success rate. "
            f"The cause: {cause(failures)}"
        )
