"""Engines: generate completions and score tokens."""

from bough.engine.engine import (
    LEAST_TEMPERATURE,
    TEMPERATURE,
    Caching,
    Completion,
    Engine,
    EngineFault,
    FinishReason,
    Request,
    Sampling,
)
from bough.engine.local import Local
from bough.engine.openai import OpenAi
from bough.engine.own_model import OwnModel, Remote
from bough.engine.replicas import Replicas
from bough.engine.scripted import InjectedFault, Scripted
from bough.engine.text_sampling import text_sampling
from bough.engine.vllm import Vllm

__all__ = [
    "TEMPERATURE",
    "LEAST_TEMPERATURE",
    "Caching",
    "Completion",
    "Engine",
    "EngineFault",
    "FinishReason",
    "InjectedFault",
    "Local",
    "OpenAi",
    "OwnModel",
    "Remote",
    "Replicas",
    "Request",
    "Sampling",
    "Scripted",
    "Vllm",
    "text_sampling",
]
