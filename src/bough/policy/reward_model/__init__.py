"""Learned rewards: a scalar head on an own transformer, trained on stored trees. Exports settings, without torch."""

from bough.policy.reward_model.appraiser import StepScores
from bough.policy.reward_model.hook import FrozenRewardModel
from bough.policy.reward_model.settings import RewardModel

__all__ = ["FrozenRewardModel", "RewardModel", "StepScores"]
