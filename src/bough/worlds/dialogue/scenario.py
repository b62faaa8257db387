"""The contract of a dialogue's scenario."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

PRICE = re.compile(r"(\d+(?:,\d{3}(?!\d))*)(?:\.\d+)?")
LARGEST = 999_999
"""A larger price counts as this one."""

FAREWELL = "goodbye"
"""A user ends the dialogue with this word."""


class Exchange(NamedTuple):
    """An act of the agent and the user's reply."""

    act: str
    reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeResult:
    """The result of the last exchange.

    Attributes:
        over: Whether the dialogue ends.
        success: Whether the agent has reached its goal.
        reward: The agent's reward.
        user_reward: The user's reward, if the dialogue ends here.
        info: Metrics of this exchange.
    """

    over: bool = False
    success: bool = False
    reward: float = 0.0
    user_reward: float = 0.0
    info: Mapping[str, object] = field(default_factory=dict[str, object])


@runtime_checkable
class Scenario(Protocol):
    """A user with private goals, a frozen dataclass with fields for JSON. Every result follows from the exchanges."""

    @property
    def content(self) -> str:
        """The canonical text, which decides the split."""
        ...

    @property
    def brief(self) -> str:
        """The agent's first observation, with the user's first words."""
        ...

    @property
    def goal(self) -> str:
        """The private instructions of the user, for a model in its place."""
        ...

    @property
    def leave_reward(self) -> float:
        """The user's reward when it leaves at the end of its patience."""
        ...

    def acts(self, exchanges: Sequence[Exchange]) -> tuple[str, ...]:
        """The acts that are open to the agent."""
        ...

    def parse_act(self, text: str) -> str | None:
        """The act of a text, by its keywords; None when there is none, or more than one."""
        ...

    def reply(self, exchanges: Sequence[Exchange], act: str) -> str:
        """The reply of the scripted user."""
        ...

    def evaluate(self, exchanges: Sequence[Exchange]) -> ExchangeResult:
        """The result of the last exchange, whose reply is any text."""
        ...

    def key(self, exchanges: Sequence[Exchange]) -> str:
        """What the exchanges changed: equal keys mean equal states."""
        ...

    def plan(self, exchanges: Sequence[Exchange], left: int) -> tuple[str, ...]:
        """Acts that lead to success with the scripted user, in at most `left` turns; () when there are none."""
        ...


def words_in(text: str, words: Iterable[str]) -> list[str]:
    """The words that occur in a text as whole words, whatever their case, in the order of `words`."""
    found = set(re.findall(r"[a-z]+", text.lower()))
    return [word for word in words if word in found]


def prices_in(text: str) -> list[int]:
    """The prices in a text, in whole units: decimals are dropped, and a comma may separate thousands.

    Examples:
        >>> prices_in("not 1,200, but 62.50")
        [1200, 62]
    """
    return [min(int(whole.replace(",", "")[:12]), LARGEST) for whole in PRICE.findall(text)]


def says_farewell(reply: str) -> bool:
    """Whether a reply ends the dialogue."""
    return bool(words_in(reply, (FAREWELL,)))
