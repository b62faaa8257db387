"""Seeded random weights."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Seed PyTorch's generators inside the block; restore their state after it."""
    random: Any = torch.random
    with random.fork_rng([]):
        random.manual_seed(seed)
        yield
