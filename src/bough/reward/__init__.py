"""Rewards: what is paid, where, and under which name."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from bough.reward.format import Format
from bough.reward.invalid import InvalidAction
from bough.reward.length import Length
from bough.reward.outcome import EnvReward, Success
from bough.reward.overlong import Overlong
from bough.tree import Floats, Rewarded, Tree

__all__ = ["EnvReward", "Format", "InvalidAction", "Length", "Overlong", "Reward", "Success", "pay"]


@runtime_checkable
class Reward(Protocol):
    """Pays the trees of one task. Seeing the whole group lets a reward compare paths with each other."""

    def __call__(self, group: Sequence[Tree]) -> Sequence[Mapping[str, Floats]]:
        """Per tree, channels by name, each [N] float64, already weighted."""
        ...


def pay(group: Sequence[Tree], rewards: Sequence[Reward]) -> list[Rewarded]:
    """Every reward's channels on the trees of one task.

    Raises:
        ValueError: when two rewards pay under the same name.
    """
    channels: list[dict[str, Floats]] = [{} for _ in group]
    for reward in rewards:
        for merged, paid in zip(channels, reward(group), strict=True):
            if clash := merged.keys() & paid.keys():
                raise ValueError(f"rewards: got two that pay under {sorted(clash)}; need a name of its own for each")
            merged.update(paid)
    return [Rewarded(tree=tree, channels=merged) for tree, merged in zip(group, channels, strict=True)]
