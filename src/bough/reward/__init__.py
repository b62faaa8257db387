"""Rewards: named channels of numbers at the nodes of trees."""

from bough.reward.format import Format
from bough.reward.invalid import InvalidAction
from bough.reward.judged import Judged
from bough.reward.length import Length
from bough.reward.mark import MarkReward
from bough.reward.outcome import EnvReward, Success
from bough.reward.overlong import Overlong
from bough.reward.reward import Reward, compute_rewards, reward_trees

__all__ = [
    "EnvReward",
    "Format",
    "InvalidAction",
    "Judged",
    "Length",
    "MarkReward",
    "Overlong",
    "Reward",
    "Success",
    "compute_rewards",
    "reward_trees",
]
