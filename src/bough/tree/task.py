"""What an agent is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One instance of an environment, fixed by value: the same task gives the same start on every machine.

    Example:
        >>> Task(id="frozenlake-1f09", data={"rows": ["SFFF", "FHFH", "FFFH", "HFFG"]})

    Attributes:
        id: Names the task in groups, metrics and files. Trees of one task have the same id.
        seed: Drives whatever the environment draws at random after the start.
        data: What the environment needs to start; values that JSON can write.
    """

    id: str
    seed: int = 0
    data: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("Task.id: got an empty string; need a name that no other task has")
