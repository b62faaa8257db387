"""Environments that fail while trees grow, after the opening of a run has gone well."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bough.env import EnvFault, Host, State, Step
from bough.rollout import Explorer, RolloutRunner, Rollouts
from bough.tree import Task


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A host whose steps fail where `fails` returns True."""

    host: Host
    fails: Callable[[], bool]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)

    async def step(self, state: State, action: str) -> Step:
        if self.fails():
            raise EnvFault("the lake is closed")
        return await self.host.step(state, action)


def break_steps(monkeypatch: pytest.MonkeyPatch, broken: Callable[[int], bool]) -> None:
    """Let the environment fail at each step of growing trees whose number, from 0, is among the broken ones."""
    grow, numbers = RolloutRunner.run, itertools.count()

    async def growing(self: RolloutRunner, explorer: Explorer, tasks: Sequence[Task], **settings: Any) -> Rollouts:
        host = Broken(host=self.host, fails=lambda: broken(next(numbers)))
        return await grow(replace(self, host=host), explorer, tasks, **settings)

    monkeypatch.setattr(RolloutRunner, "run", growing)
