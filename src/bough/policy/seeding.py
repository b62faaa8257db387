"""Random weights that depend on a seed alone."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """What is drawn inside depends on `seed` alone, and leaves what is drawn outside as it was."""
    random: Any = torch.random
    with random.fork_rng():
        random.manual_seed(seed)
        yield
