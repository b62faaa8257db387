"""The Python with vLLM, an engine on it, and a model for it."""

import os
from pathlib import Path

import torch

from bough.engine import Vllm
from bough.policy import Tiny
from bough.policy.policy import Policy

PYTHON = Path(os.environ.get("VLLM_PYTHON", ".venv/vllm/bin/python")).absolute()

ENGINE = Vllm(python=str(PYTHON), cache_gib=1, entropies=True)


def policy() -> Policy:
    """The head is tied to the embedding; vLLM needs heads of at least 32 elements on a CPU."""
    return Tiny(width=64, heads=2, vocab_tokens=300, context_tokens=512).build(["the red key is in the drawer"])


def changed_policy() -> Policy:
    """The policy with clearly other log-probabilities."""
    changed = policy()
    with torch.no_grad():
        for weight in changed.parameters().values():
            weight.mul_(1.1)
    return changed


def prompts(count: int, tokens: int | None = None) -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(count)
    lengths = [tokens or 5 + 7 * number for number in range(count)]
    return [tuple(torch.randint(4, 260, (length,), generator=generator).tolist()) for length in lengths]
