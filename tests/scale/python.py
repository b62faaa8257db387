"""The Python with vLLM, an engine on it, and a model for it."""

import os
import tempfile
from pathlib import Path

import torch

from bough.engine import Vllm
from bough.policy import Lora, Pretrained, Tiny
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


def adapted_policy() -> Policy:
    """The policy with adapters that change it clearly."""
    with tempfile.TemporaryDirectory() as folder:
        policy().save(Path(folder))
        adapted = Pretrained(path=folder, lora=Lora(rank=4), device="cpu", dtype="float32").build(())
    move(adapted)
    return adapted


def move(moved: Policy, *, by: float = 0.1, seed: int = 0) -> None:
    """Add noise to every trained weight."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in moved.parameters().values():
            weight.add_(by * torch.randn(weight.shape, generator=generator))


def prompts(count: int, tokens: int | None = None) -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(count)
    lengths = [tokens or 5 + 7 * number for number in range(count)]
    return [tuple(torch.randint(4, 260, (length,), generator=generator).tolist()) for length in lengths]
