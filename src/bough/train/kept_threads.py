"""PyTorch's number of threads, which a run sets for the whole process."""

from collections.abc import Generator
from contextlib import contextmanager

import torch


@contextmanager
def kept_threads() -> Generator[None]:
    """Restore the number at the end: without it the next run in this process would find another number of cores."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
