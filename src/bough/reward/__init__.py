"""Rewards: named channels of numbers at the nodes of trees."""

from bough.reward.answer_guard import AnswerGuard
from bough.reward.box_score import BoxScore
from bough.reward.diversity import Diversity
from bough.reward.format import Format
from bough.reward.invalid import InvalidAction
from bough.reward.judged import Judged
from bough.reward.length import Length
from bough.reward.mark import MarkReward
from bough.reward.outcome import EnvReward, Success
from bough.reward.overlong import Overlong
from bough.reward.point_in_box import PointInBox
from bough.reward.potential import PotentialGain, PotentialShaping
from bough.reward.ranked_points import RankedPoints
from bough.reward.reward import Reward, compute_rewards, reward_trees

__all__ = [
    "AnswerGuard",
    "BoxScore",
    "Diversity",
    "EnvReward",
    "Format",
    "InvalidAction",
    "Judged",
    "Length",
    "MarkReward",
    "Overlong",
    "PointInBox",
    "PotentialGain",
    "PotentialShaping",
    "RankedPoints",
    "Reward",
    "Success",
    "compute_rewards",
    "reward_trees",
]
