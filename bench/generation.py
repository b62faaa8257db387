"""Tokens per second of `Local` beside those of transformers' `generate`, on the same model, in turn.

    python bench/generation.py [--size tiny|small] [--threads 2] [--rounds 3]

Two workloads: branches that share a prompt, and chains of many turns, which `generate` has to read from their beginning
at every turn. What counts are the ratios: both sides run in turn, so that other work on the machine hits both.
"""

import argparse
import asyncio
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from bough.engine import Local, Request, Sampling
from bough.engine.generation import LocalEngine
from bough.engine.model import Attend
from bough.policy.causal import Causal
from bough.policy.probe import probe
from bough.policy.replica import Replica

VOCAB_TOKENS = 512
CONTEXT_TOKENS = 1024
SIZES = {"tiny": (2, 128), "small": (4, 256)}
"""Layers and width."""


class Timed(Replica):
    """A replica that keeps the seconds spent in its parts."""


def model(size: str) -> PreTrainedModel:
    layers, width = SIZES[size]
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCAB_TOKENS,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        eos_token_id=None,
        pad_token_id=0,
    )
    return Qwen3ForCausalLM(config).eval()
