"""The policy: a causal language model, its tokenizer and its chat template.

This module exports settings, without torch. Their `build` makes the running objects (`bough.policy.policy`).
"""

from bough.policy.lora import Lora
from bough.policy.pretrained import Pretrained
from bough.policy.tiny import Tiny

__all__ = [
    "Lora",
    "Pretrained",
    "Tiny",
]
