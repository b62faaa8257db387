"""The policy: a causal language model, its tokenizer and its chat template.

This module exports settings, without torch. Their `build` makes the running objects (`bough.policy.policy`).
"""

from bough.policy.calls import (
    ArgValues,
    CallFormat,
    DeepSeek,
    Harmony,
    Hermes,
    Invoke,
    JsonList,
    Kimi,
    Llama,
    Mistral,
    PlainFormat,
    Pythonic,
    ToolCode,
    XmlParameters,
)
from bough.policy.lora import Lora
from bough.policy.pretrained import Pretrained
from bough.policy.tiny import Tiny

__all__ = [
    "ArgValues",
    "CallFormat",
    "DeepSeek",
    "Harmony",
    "Hermes",
    "Invoke",
    "JsonList",
    "Kimi",
    "Llama",
    "Lora",
    "Mistral",
    "PlainFormat",
    "Pretrained",
    "Pythonic",
    "Tiny",
    "ToolCode",
    "XmlParameters",
]
