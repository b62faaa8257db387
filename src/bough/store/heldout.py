"""The held-out results of a run on disk, task by task."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bough.store.atomic import StoreError, read_stored
from bough.store.rundir import RunDirectory


def heldout_file(directory: RunDirectory, step: int) -> Path:
    """The file of a step's held-out result."""
    return directory.path / "heldout" / f"step_{step:06d}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHeldout:
    """A held-out result as `heldout/` keeps it.

    Attributes:
        successes: Success by task id.
        rewards: The reward of the path by task id; empty without rewards.
        graded: Whether rewards have more values than success.
    """

    successes: Mapping[str, bool]
    rewards: Mapping[str, float]
    graded: bool


def read_heldout_results(directory: RunDirectory) -> dict[int, StoredHeldout]:
    """The held-out results by step; evaluations in which every task failed are missing.

    Raises:
        StoreError: when a file is damaged; names it.
    """
    found: dict[int, StoredHeldout] = {}
    for path in sorted((directory.path / "heldout").glob("step_*.json")):
        data = read_stored(path)
        step, tasks, rewards = data.get("step"), data.get("tasks"), data.get("rewards", {})
        if not (isinstance(step, int) and _by_name(tasks, bool) and _by_name(rewards, float, int)):
            raise StoreError(
                f"{path}: got no result of held-out tasks; need the file as the run wrote it, or remove it"
            )
        if tasks:
            found[step] = StoredHeldout(successes=tasks, rewards=rewards, graded=bool(data.get("graded", False)))
    return found


def _by_name(value: object, *kinds: type) -> bool:
    """Whether a value is an object whose values are of some types."""
    return isinstance(value, Mapping) and all(
        isinstance(each, kinds) for each in cast("Mapping[str, object]", value).values()
    )


def read_heldout(directory: RunDirectory) -> dict[int, dict[str, bool]]:
    """By step, success by task id of the held-out tasks; evaluations in which every task failed are missing."""
    return {step: dict(each.successes) for step, each in read_heldout_results(directory).items()}
