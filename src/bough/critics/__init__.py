"""Learned critics and reward models, which train networks of their own beside the policy.

This module exports settings, without torch. Their `build` makes the running objects.
"""

from bough.critics.frozen_critic import FrozenCritic
from bough.critics.progress import ProgressReward
from bough.critics.reward_model import FrozenRewardModel, RewardModel, StepScores
from bough.critics.utterance import UtteranceCritic
from bough.critics.valuehead import ValueHead

__all__ = [
    "FrozenCritic",
    "FrozenRewardModel",
    "ProgressReward",
    "RewardModel",
    "StepScores",
    "UtteranceCritic",
    "ValueHead",
]
