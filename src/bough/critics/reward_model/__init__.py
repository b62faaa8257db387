"""Learned rewards: a scalar head on an own transformer, trained on stored trees. Exports settings, without torch."""

from bough.critics.reward_model.appraiser import StepScores
from bough.critics.reward_model.hook import FrozenRewardModel
from bough.critics.reward_model.settings import RewardModel

__all__ = ["FrozenRewardModel", "RewardModel", "StepScores"]
