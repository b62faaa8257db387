"""Hooks that act on the whole run: they weigh and rewrite tasks and set numbers of settings, for all policies."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from bough.hooks.hook import Hooks, list_of
from bough.tree import AgentAction, Floats, StageError, Task, derive, describe, is_column

Teacher: TypeAlias = Callable[[Task], Awaitable[tuple[AgentAction, ...]]]
"""Returns the oracle's solution of a task; () when there is none."""


class TaskSampler(ABC):
    """Base of hooks that also set the sampling weights of tasks."""

    @abstractmethod
    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n] > 0: sampling weights of the tasks, given by id; None for equal weights."""


class TaskRewriter(ABC):
    """Base of hooks that also change the start of a batch's tasks, or replace tasks; `HookSetup.ask` queries models."""

    @abstractmethod
    async def rewrite(self, tasks: Sequence[Task], teacher: Teacher, seed: int, /) -> list[Task]:
        """The same number of tasks. A task with another start has an id of its own (`Task.after`)."""


DRIVEN = ("sampling.temperature", "limits.turns", "limits.tokens", "optimizer.schedule", "normalizer.horizon_tokens")
"""The settings that a `SettingDriver` can set."""


class SettingDriver(ABC):
    """Base of hooks that also set settings before each step, such as a curriculum. They need staleness 0."""

    @abstractmethod
    def drive(self) -> Mapping[str, float]:
        """Returns, by setting of `DRIVEN`, the number for the next step; settings left out keep their own.

        Numbers of whole settings are rounded. A number out of the bounds of its setting is an error.
        """


class HookOwner(Protocol):
    """The policy of some hooks."""

    def seed(self, seed: int, /) -> int:
        """A seed of this policy."""
        ...

    def task_name(self, task: str, /) -> str:
        """The id of a task in the trees of this policy."""
        ...


class RunHooks:
    """The task samplers, task rewriters and setting drivers among the hooks of all policies, called in order."""

    def __init__(self, policies: Sequence[tuple[HookOwner, Hooks]]) -> None:
        """Collect them from the hooks of the policies in training."""
        members = [(owner, name, hook) for owner, hooks in policies for name, hook in hooks.members.items()]
        self._samplers = [(owner, name, hook) for owner, name, hook in members if isinstance(hook, TaskSampler)]
        self._drivers = [(name, hook) for _, name, hook in members if isinstance(hook, SettingDriver)]
        self._rewriters = [(owner, name, hook) for owner, name, hook in members if isinstance(hook, TaskRewriter)]

    @property
    def drives(self) -> bool:
        """Whether a hook drives settings."""
        return bool(self._drivers)

    def drive(self) -> dict[str, float]:
        """Returns, by setting, the numbers of all drivers for the next step.

        Raises:
            StageError: when a setting is not in `DRIVEN` or has two drivers, or a number is not finite.
        """
        found: dict[str, float] = {}
        for name, hook in self._drivers:
            for setting, number in hook.drive().items():
                if setting not in DRIVEN or setting in found or not np.isfinite(number):
                    raise StageError(
                        f"{name}.drive: got {setting}={number}; need a finite number for one of {', '.join(DRIVEN)}, "
                        "each driven by one hook"
                    )
                found[setting] = number
        return found

    @property
    def rewrites(self) -> bool:
        """Whether a hook rewrites tasks."""
        return bool(self._rewriters)

    def weigh(self, tasks: Sequence[Task]) -> Floats | None:
        """[n]: the normalised product of the weights of all task samplers; None without weights."""
        weight: Floats | None = None
        for owner, name, hook in self._samplers:
            own: object = hook.weigh([owner.task_name(task.id) for task in tasks])
            if own is None:
                continue
            if not is_column(own, len(tasks)) or not np.all(np.isfinite(own) & (own > 0)):
                raise StageError(
                    f"{name}.weigh: got {describe(own)}; need {len(tasks)} finite numbers above 0, one a task"
                )
            weight = own if weight is None else weight * own
        return None if weight is None else weight / weight.sum()

    async def rewrite(self, tasks: Sequence[Task], teacher: Teacher, seed: int) -> list[Task]:
        """The tasks after `rewrite` of every task rewriter."""
        begun = list(tasks)
        for owner, name, hook in self._rewriters:
            returned = await hook.rewrite(begun, teacher, derive(owner.seed(seed), name))
            begun = list_of(Task, returned, f"{name}.rewrite")
            if len(begun) != len(tasks):
                raise StageError(f"{name}.rewrite: got {len(begun)} tasks for {len(tasks)}; need as many as were drawn")
        return begun
