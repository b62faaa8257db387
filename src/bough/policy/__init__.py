"""The policy: a causal language model, its tokenizer and its way of writing prompts.

What a run's config names is here, without torch. What runs is in `bough.policy.policy` and is made by `build`.
"""

from bough.policy.lora import Lora
from bough.policy.pretrained import Pretrained
from bough.policy.tiny import Tiny
from bough.policy.utterance import UtteranceCritic
from bough.policy.valuehead import ValueHead

__all__ = ["Lora", "Pretrained", "Tiny", "UtteranceCritic", "ValueHead"]
