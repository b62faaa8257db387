"""A reward: numbers for the nodes of the trees of one task."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast, runtime_checkable

import numpy as np

from bough.tree import Floats, HasRewardRanges, Rewarded, StageError, Tree, describe, groups, is_column
from bough.usercode.guards import contained


@runtime_checkable
class Reward(Protocol):
    """Rewards the trees of one task. The whole group is given, so a reward can compare paths with each other."""

    def __call__(self, group: Sequence[Tree]) -> Sequence[Mapping[str, Floats]]:
        """Returns the channels of each tree by name, each [N] float64, already weighted."""
        ...


def compute_rewards(group: Sequence[Tree], rewards: Sequence[Reward], field: str = "rewards") -> list[Rewarded]:
    """Computes every reward's channels on the trees of one task.

    Args:
        group: The trees.
        rewards: The rewards.
        field: The setting that has them, for errors.

    Raises:
        StageError: when two rewards pay the same channel, or one does not return finite numbers for each node of each
            tree.
    """
    channels: list[dict[str, Floats]] = [{} for _ in group]
    for reward in rewards:
        for merged, paid in zip(channels, _checked(reward, group, field), strict=True):
            if clash := merged.keys() & paid.keys():
                pieces = ", ".join(type(each).__name__ for each in rewards)
                raise StageError(
                    f"{field}=[{pieces}]: got two that pay under {sorted(clash)}; need a name of its own for each "
                    "channel: remove one, or let it pay under another name"
                )
            merged.update(paid)
    return [Rewarded(tree=tree, channels=merged) for tree, merged in zip(group, channels, strict=True)]


def reward_trees(trees: Sequence[Tree], rewards: Sequence[Reward], field: str = "rewards") -> list[Rewarded]:
    """Computes the rewards of trees, those of one task together; takes and raises what `compute_rewards` does."""
    return [rewarded for group in groups(trees) for rewarded in compute_rewards(group, rewards, field)]


def _checked(reward: Reward, group: Sequence[Tree], field: str) -> list[Mapping[str, Floats]]:
    """What a reward returns: for each tree its channels, [N] finite numbers each.

    Raises:
        StageError: when it is anything else; names the reward, the channel and the task.
    """
    piece = f"{field}={type(reward).__name__}"
    with contained(piece):
        returned = cast("object", reward(group))
    need = "one mapping of channels, name to [N] numbers, for each tree, in their order"
    if not isinstance(returned, Sequence) or isinstance(returned, str):
        raise StageError(f"{piece}: got {describe(returned)}; need a list with {need}")
    paid = list(cast("Sequence[object]", returned))
    declared = reward.reward_ranges if isinstance(reward, HasRewardRanges) else None
    if len(paid) != len(group):
        raise StageError(f"{piece}: got channels of {len(paid)} trees for {len(group)}; need {need}")
    for tree, channels in zip(group, paid, strict=True):
        if not isinstance(channels, Mapping):
            raise StageError(f"{piece}: got {describe(channels)} for a tree; need {need} (task {tree.task.id})")
        for name, column in cast("Mapping[object, object]", channels).items():
            place = f"{piece}: channel {name!r} of task {tree.task.id}"
            if not isinstance(name, str):
                raise StageError(f"{place}: got a name of type {type(name).__name__}; need a string")
            if declared is not None and name not in declared:
                raise StageError(
                    f"{place}: got a channel that `reward_ranges` does not declare; need one of {sorted(declared)}"
                )
            if not is_column(column, tree.nodes):
                raise StageError(f"{place}: got {describe(column)}; need an array of {tree.nodes} numbers, one a node")
            if not np.all(np.isfinite(column)):
                wrong = int(np.flatnonzero(~np.isfinite(column))[0])
                raise StageError(f"{place}: got {column[wrong]} at node {wrong}; need finite numbers")
    return cast("list[Mapping[str, Floats]]", paid)
