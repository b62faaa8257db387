"""The policy: a causal language model, its tokenizer and its chat template.

This module exports settings, without torch. Their `build` makes the running objects (`bough.policy.policy`).
"""

from bough.policy.frozen_critic import FrozenCritic
from bough.policy.lora import Lora
from bough.policy.pretrained import Pretrained
from bough.policy.progress import ProgressReward
from bough.policy.reward_model import FrozenRewardModel, RewardModel, StepScores
from bough.policy.tiny import Tiny
from bough.policy.utterance import UtteranceCritic
from bough.policy.valuehead import ValueHead

__all__ = [
    "FrozenCritic",
    "FrozenRewardModel",
    "Lora",
    "Pretrained",
    "ProgressReward",
    "RewardModel",
    "StepScores",
    "Tiny",
    "UtteranceCritic",
    "ValueHead",
]
