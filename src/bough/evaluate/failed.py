"""The error of an evaluation in which every task failed."""

from collections.abc import Mapping

from bough.view import cause


class AllFailed(RuntimeError):
    """Every task failed, so there is no success rate. The message has the cause."""


def require_some(successes: Mapping[str, bool], failures: Mapping[str, str]) -> None:
    """Check that a success rate rests on at least one task.

    Args:
        successes: By task id, whether the task is solved; without those that failed.
        failures: Cause by task id, of those that failed.

    Raises:
        AllFailed: when there are failures alone.
    """
    if not successes:
        raise AllFailed(
            f"got {len(failures)} tasks that all failed; need at least one that ends, for a success rate. "
            f"The cause: {cause(failures)}"
        )
