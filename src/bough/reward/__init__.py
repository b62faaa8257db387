"""Rewards: named channels of numbers at the nodes of trees."""

from bough.reward.box_score import BoxScore
from bough.reward.budget_reward import BudgetReward
from bough.reward.diversity import Diversity
from bough.reward.format import Format
from bough.reward.format_constraint import FormatConstraint
from bough.reward.invalid import InvalidAction
from bough.reward.judged import Judged
from bough.reward.length import Length
from bough.reward.length_budget import LengthBudget
from bough.reward.mark import MarkReward
from bough.reward.meta_reasoning import MetaReasoning
from bough.reward.observation_value import ObservationValue
from bough.reward.outcome import EnvReward, Success
from bough.reward.overlong import Overlong
from bough.reward.point_in_box import PointInBox
from bough.reward.potential import PotentialGain, PotentialShaping
from bough.reward.ranked_points import RankedPoints
from bough.reward.repetition import Repetition
from bough.reward.reward import Reward, compute_rewards, reward_trees
from bough.reward.staged import StagedReward
from bough.reward.stages import AnswerBleu, CalledTool, Finished, JudgedQuality, Solved, Stage, ValidActions, WellFormed

__all__ = [
    "AnswerBleu",
    "BoxScore",
    "BudgetReward",
    "CalledTool",
    "Diversity",
    "EnvReward",
    "Finished",
    "Format",
    "FormatConstraint",
    "InvalidAction",
    "Judged",
    "JudgedQuality",
    "Length",
    "LengthBudget",
    "MarkReward",
    "MetaReasoning",
    "ObservationValue",
    "Overlong",
    "PointInBox",
    "PotentialGain",
    "PotentialShaping",
    "RankedPoints",
    "Repetition",
    "Reward",
    "Solved",
    "Stage",
    "StagedReward",
    "Success",
    "ValidActions",
    "WellFormed",
    "compute_rewards",
    "reward_trees",
]
