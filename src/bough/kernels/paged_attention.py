"""Attention over a paged KV cache, in C++ (paged_attention.cpp)."""

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from bough.kernels.heads import Heads, empty_heads, heads, load_kernel, readable

ARRAYS = ("place", "position", "page_begin", "page", "start", "filled", "query_begin", "token", "until")
"""Arrays of `engine.page_runs.PageRuns`, in the order of the C++ struct."""


class _PageRuns(ctypes.Structure):
    _fields_ = (("tokens", ctypes.c_int64), ("runs", ctypes.c_int64), *((name, ctypes.c_void_p) for name in ARRAYS))


@cache
def paged_kernel(dtype: torch.dtype, width: int, page_tokens: int) -> ctypes.CDLL | None:
    """The compiled kernel for heads of `width` elements and pages of `page_tokens`; None where there is none."""
    source, page = Path(__file__).with_name("paged_attention.cpp"), f"PAGE={page_tokens}"
    code = load_kernel(source, dtype, width, page, slower="generation takes longer than it needs to")
    if code is not None:
        count, runs = ctypes.c_int64, ctypes.POINTER(_PageRuns)
        scale, threads = ctypes.c_double, ctypes.c_int32
        code.put.argtypes = (runs, *(Heads,) * 4, count)
        code.attend.argtypes = (runs, *(Heads,) * 4, count, count, scale, count, threads)
        code.put.restype = code.attend.restype = None
    return code


class PagedKernel:
    """The kernel with the page runs of one forward pass. The arrays are read in place and may be updated."""

    def __init__(self, code: ctypes.CDLL, runs: Mapping[str, NDArray[np.int64]]) -> None:
        """Take the arrays named in `ARRAYS`."""
        self._code, self._runs = code, runs
        addresses = (runs[name].ctypes.data for name in ARRAYS)
        self._argument = ctypes.byref(_PageRuns(len(runs["place"]), len(runs["page_begin"]) - 1, *addresses))

    def write(
        self,
        keys: Float[Tensor, "K T D"],
        values: Float[Tensor, "K T D"],
        key: Float[Tensor, "K U D"],
        value: Float[Tensor, "K U D"],
    ) -> None:
        """Write U tokens' keys and values into a layer's cache. Keys are transposed within their page.

        Raises:
            TypeError: when a dtype differs from the cache's.
        """
        key, value = readable(key, like=keys), readable(value, like=keys)
        self._code.put(self._argument, *map(heads, (key, value, keys, values)), len(key))

    def attend(
        self,
        keys: Float[Tensor, "K T D"],
        values: Float[Tensor, "K T D"],
        query: Float[Tensor, "H U D"],
        scale: float,
        window: int | None,
    ) -> Float[Tensor, "H U D"]:
        """Attention of the runs' queries over a layer's cache.

        Raises:
            TypeError: when the query's dtype differs from the cache's.
        """
        query = readable(query, like=keys)
        out = empty_heads(query)
        counts = (len(keys), len(query) // len(keys))
        settings = (scale, window or 0, torch.get_num_threads())
        self._code.attend(self._argument, *map(heads, (query, keys, values, out)), *counts, *settings)
        return out
