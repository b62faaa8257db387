"""The agents of the seats of an environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from bough.context import Turn
from bough.env.script import Script
from bough.rollout.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatAgent:
    """The agent of a seat.

    Attributes:
        instructions: The environment's instructions for the seat.
        agent: A model with its context, parser and sampling; or a script, whose turns have no tokens.
        automatic: Whether the rollout takes the seat's turns itself. Explorers act for the other seats only.
    """

    instructions: str
    agent: Agent | Script
    automatic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatContext:
    """The context of a seat while other seats act.

    Attributes:
        text: All its tokens.
        past: The seat's turns.
    """

    text: tuple[int, ...] = ()
    past: tuple[Turn, ...] = ()


SeatContexts: TypeAlias = Mapping[str, SeatContext]
"""The contexts of seats that have acted, by name."""
