"""The worker processes of a `MultiProcessEngine`: how they start, and how they get new weights."""

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from bough.engine.worker import EngineWorker
from bough.engine.worker_process import Message


class EngineProcesses(Protocol):
    """The worker processes of an engine."""

    @property
    def count(self) -> int:
        """Number of processes."""
        ...

    @property
    def slots(self) -> int:
        """Concurrent requests of a process."""
        ...

    @property
    def cache_tokens(self) -> int:
        """Tokens in the KV cache of a process."""
        ...

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        ...

    @property
    def start_s(self) -> float:
        """Longest time of a start, seconds."""
        ...

    @property
    def deadline_s(self) -> float:
        """Longest time without an answer from a process that has requests, seconds."""
        ...

    def start(self, index: int, policy_version: int) -> EngineWorker:
        """Start a process with the newest weights.

        Args:
            index: Of the process, from 0.
            policy_version: The version of the newest weights.

        Raises:
            ValueError: when it cannot start.
        """
        ...

    def load(self, weights: Mapping[str, Tensor], policy_version: int) -> Message:
        """Take new weights; returns what the running processes are sent.

        Raises:
            ValueError: when the weights do not fit the model.
        """
        ...

    def close(self) -> None:
        """Free what the processes used. Safe to call twice."""
        ...
