"""Scripted seats: functions of the state that act in place of a model."""

from dataclasses import dataclass
from random import Random
from typing import Protocol, runtime_checkable

from bough.env.env import EnvFault, State
from bough.tree import AgentAction


@runtime_checkable
class Script(Protocol):
    """Acts for a seat: a frozen dataclass whose fields are its settings."""

    def act(self, state: State, seed: int) -> AgentAction:
        """The action in a state.

        Args:
            state: The state; its observation is that of the seat.
            seed: Seed of random choices; differs between the turns and the branches of a tree.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomAction:
    """A uniformly random admissible action."""

    def act(self, state: State, seed: int) -> AgentAction:
        """See `Script.act`.

        Raises:
            EnvFault: when the state lists no admissible actions.
        """
        if not state.admissible:
            raise EnvFault("RandomAction: got a state without admissible actions; need an environment that lists them")
        return Random(seed).choice(state.admissible)
