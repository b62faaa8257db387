"""Tasks."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from bough.tree.copied import copied_fields
from bough.tree.message import AgentAction
from bough.tree.records import action_record, read_action

BEGUN = " after "
"""Separates the id of a task from the hash of the actions executed before the agent's first turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One instance of an environment, fixed by value: the same task gives the same start on every machine.

    Examples:
        >>> Task(id="frozenlake-1f09", data={"rows": ["SFFF", "FHFH", "FFFH", "HFFG"]})

    Attributes:
        id: Name of the task in groups, metrics and files. Trees of one task have the same id.
        seed: Seed of the environment's random choices after the start.
        data: The environment's data for the start; values that JSON can write.
        start: Actions executed before the agent's first turn. They are replayed and have no loss.
    """

    id: str
    seed: int = 0
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    start: tuple[AgentAction, ...] = ()

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("Task.id: got an empty string; need a name that no other task has")

    def after(self, actions: Sequence[AgentAction]) -> "Task":
        """Returns the same task from a later start: after `actions`, appended to its own start actions.

        It has its own id, so its paths form their own group; the same actions give the same id.
        """
        start = (*self.start, *actions)
        if not actions:
            return self
        base = self.base_id
        name = hashlib.blake2b(json.dumps([*map(action_record, start)]).encode(), digest_size=6).hexdigest()
        return replace(self, id=f"{base}{BEGUN}{len(start)}-{name}", start=start)

    def copy(self) -> "Task":
        """Returns the task with data of its own, so that a change of it reaches no other episode."""
        return replace(self, data=copied_fields(self.data))

    @property
    def base_id(self) -> str:
        """The id of the task from its own start, which all its later starts share."""
        return self.id.rpartition(BEGUN)[0] if self.start and BEGUN in self.id else self.id

    def record(self) -> dict[str, object]:
        """Returns the task as JSON data; `start` only where it is not empty."""
        row: dict[str, object] = {"id": self.id, "seed": self.seed, "data": self.data}
        return row | ({"start": [*map(action_record, self.start)]} if self.start else {})

    @classmethod
    def read(cls, row: Mapping[str, object]) -> "Task":
        """Returns the task of a row that `record` made."""
        start = tuple(map(read_action, cast("list[object]", row.get("start", []))))
        fields = {**row, "start": start}
        return cls(**fields)  # pyright: ignore[reportArgumentType]

    @classmethod
    def parse(cls, row: Mapping[str, object]) -> "Task":
        """Returns the task of a row that a user wrote: all fields but `id` are optional, and an id may be a number.

        Raises:
            ValueError: when it is none; has the problem.
        """
        if unknown := row.keys() - {"id", "seed", "data", "start"}:
            raise ValueError(f"unknown field {sorted(unknown)}")
        name, seed, data = row.get("id"), row.get("seed", 0), row.get("data", {})
        start = row.get("start", [])
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name:
            raise ValueError("no 'id' that is a text of at least one letter")
        if not isinstance(seed, int) or isinstance(seed, bool) or not -(2**63) <= seed < 2**63:
            raise ValueError("a 'seed' that is no whole number of 64 bits")
        if not isinstance(data, Mapping):
            raise ValueError("a 'data' that is no object")
        try:
            actions = tuple(map(read_action, cast("list[object]", start if isinstance(start, list) else [None])))
        except (KeyError, TypeError) as error:
            raise ValueError("a 'start' that is no list of actions, each a text or a text with calls") from error
        return cls(id=name, seed=seed, data=cast("Mapping[str, object]", data), start=actions)
