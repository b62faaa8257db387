"""Generated inputs: each with a generator of its own, so that an input that fails can be made alone."""

import os
import zlib
from collections.abc import Iterator

import numpy as np

COUNT = int(os.environ.get("BOUGH_FUZZ", "2000"))
"""Inputs of a test; set BOUGH_FUZZ for more of them."""


def inputs(name: str) -> Iterator[tuple[int, np.random.Generator]]:
    """Numbers of inputs with their generators; `name` is the boundary."""
    for number in range(COUNT):
        yield number, np.random.default_rng([zlib.crc32(name.encode()), number])
