"""Shapes and types of the whole package are checked at run time, in tests only."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook
from tests.talk import Bough

# Before anything imports bough: only modules that are imported under the hook are checked.
install_import_hook("bough", "beartype.beartype")

# How long an example takes says more about what else the machine does than about the code; benchmarks measure speed.
settings.register_profile("bough", deadline=None)
settings.load_profile("bough")

# These tensors are small, and threads that wait for each other cost more than they save.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def bough() -> Iterator[Bough]:
    """`bough("train", "grpo_frozenlake", folder=tmp_path)` runs a command and returns what it said."""
    process = Bough()
    yield process
    process.close()
