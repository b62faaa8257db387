"""The arguments of `bough train-reward`: places of trees, and fields of the reward model."""

from collections.abc import Sequence
from pathlib import Path

from bough.config import ConfigError, override
from bough.critics import RewardModel


def split_fields(arguments: Sequence[str]) -> tuple[list[Path], RewardModel]:
    """The places of trees, and the settings with the arguments `field=value` that name no file.

    Raises:
        ConfigError: when no place is left, a field is unknown or does not take its value.
    """
    changes = [each for each in arguments if "=" in each and not Path(each).exists()]
    places = [Path(each) for each in arguments if each not in changes]
    if not places:
        raise ConfigError("got no trees; need a run directory, a folder of a search, or a folder or file of trees")
    return places, override(RewardModel(), changes)
