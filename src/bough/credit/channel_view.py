"""The paths of a batch with the rewards of one channel."""

from collections.abc import Sequence
from dataclasses import replace

from bough.tree import PathView, Rewarded, StageError, path_view


def channel_view(rewarded: Sequence[Rewarded], name: str, *, setting: str, remedy: str) -> PathView:
    """The path view of trees whose only rewards are those of a channel.

    Args:
        rewarded: The trees.
        name: The channel.
        setting: The setting that names the channel, such as "Capo.step", for the error.
        remedy: A reward that pays such a channel, for the error.

    Raises:
        StageError: when a tree lacks the channel.
    """
    for each in rewarded:
        if name not in each.channels:
            raise StageError(
                f"{setting}: got {name!r} and the channels {sorted(each.channels)} (task {each.tree.task.id}); need a "
                f"reward that pays this channel, such as {remedy}"
            )
    return path_view([replace(each, channels={name: each.channels[name]}) for each in rewarded])
