"""Tasks."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

BEGUN = " after "
"""Stands between the id of a task and what names the actions that were taken before the agent begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One instance of an environment, fixed by value: the same task gives the same start on every machine.

    Example:
        >>> Task(id="frozenlake-1f09", data={"rows": ["SFFF", "FHFH", "FFFH", "HFFG"]})

    Attributes:
        id: Names the task in groups, metrics and files. Trees of one task have the same id.
        seed: Drives whatever the environment draws at random after the start.
        data: What the environment needs to start; values that JSON can write.
        start: Actions that were taken before the agent begins. They are played again, and nothing is learned from them.
    """

    id: str
    seed: int = 0
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    start: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("Task.id: got an empty string; need a name that no other task has")

    def after(self, actions: Sequence[str]) -> "Task":
        """The same task from another place: after `actions`, counted from where this one begins.

        It has an id of its own, so that its paths are compared among themselves; the same actions make the same id.
        """
        start = (*self.start, *actions)
        if not actions:
            return self
        base = self.id.rpartition(BEGUN)[0] if self.start else self.id
        name = hashlib.blake2b(json.dumps(start).encode(), digest_size=6).hexdigest()
        return replace(self, id=f"{base}{BEGUN}{len(start)}-{name}", start=start)

    def record(self) -> dict[str, object]:
        """The task as JSON writes it; `start` only where there is one."""
        row: dict[str, object] = {"id": self.id, "seed": self.seed, "data": self.data}
        return row | ({"start": list(self.start)} if self.start else {})

    @classmethod
    def read(cls, row: Mapping[str, object]) -> "Task":
        """The task that `record` made the row of."""
        fields = {name: tuple(cast("list[str]", value)) if name == "start" else value for name, value in row.items()}
        return cls(**fields)  # pyright: ignore[reportArgumentType]
