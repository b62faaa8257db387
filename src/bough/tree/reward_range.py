"""What a reward channel can pay."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

MOST_REWARD = 1e15
"""Largest reward, by size: sums and squares of larger ones overflow in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRange:
    """The least and the most that a channel pays, its weight included.

    Attributes:
        low: The least; -inf where the piece sets no bound, such as a reward of the environment's own.
        high: The most; inf without a bound.
        per: What is paid within these bounds: a whole "path", the sum over its nodes, or one "turn" of it, the sum from
            its action up to the next.
    """

    low: float = -math.inf
    high: float = math.inf
    per: Literal["path", "turn"] = "turn"

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"RewardRange: got low={self.low}, high={self.high}; need low <= high")

    @staticmethod
    def of(low: float, high: float, *, weight: float = 1.0, per: Literal["path", "turn"] = "turn") -> "RewardRange":
        """The range of numbers from `low` to `high`, times a weight of any sign."""
        ends = (low * weight, high * weight) if weight else (0.0, 0.0)
        return RewardRange(low=min(ends), high=max(ends), per=per)

    def __str__(self) -> str:
        if not (math.isfinite(self.low) or math.isfinite(self.high)):
            return "any number"
        return f"{self.low:g} to {self.high:g} a {self.per}"


@runtime_checkable
class HasRewardRanges(Protocol):
    """A reward or a hook that declares the range of each of its channels."""

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """By channel, what it can pay."""
        ...
