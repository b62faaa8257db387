"""Attention of one pass in machine code of our own (attend.cpp), on a CPU: nothing is copied, padded or merged."""

import ctypes
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from bough.engine.attention import Attention
from bough.engine.cache import Cache
from bough.engine.model import Model
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints
from bough.engine.stretches import Stretches
from bough.machine import Heads, code_for, heads, plain, room

ARRAYS = ("place", "position", "page_begin", "page", "start", "filled", "query_begin", "token", "until")
"""Of `Stretches`, in the order in which the code has them."""


class _Stretches(ctypes.Structure):
    _fields_ = (
        ("tokens", ctypes.c_int64),
        ("stretches", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ARRAYS),
    )


def kernel_for(model: Model) -> ctypes.CDLL | None:
    """The code for a model's keys and values; None where there is none, and torch's operations are to be used.

    Warns where it cannot be compiled.
    """
    return _kernel(model.dtype, model.head_width) if model.device.type == "cpu" else None


@cache
def _kernel(dtype: torch.dtype, width: int) -> ctypes.CDLL | None:
    source, page = Path(__file__).with_name("attend.cpp"), f"PAGE={PAGE_TOKENS}"
    code = code_for(source, dtype, width, page, without="generation takes about a third longer than it needs to")
    if code is not None:
        many, found = ctypes.c_int64, ctypes.POINTER(_Stretches)
        scale, threads = ctypes.c_double, ctypes.c_int32
        code.put.argtypes = (found, *(Heads,) * 4, many)
        code.attend.argtypes = (found, *(Heads,) * 4, many, many, scale, many, threads)
        code.put.restype = code.attend.restype = None
    return code


class NativeAttention(Attention):
    """Attention by a kernel."""

    def __init__(self, kernel: ctypes.CDLL, cache: Cache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """See `Attention`; the kernel must be for such a cache."""
        super().__init__(cache, pages, slots, first, count)
        self._kernel = kernel
        self._argument = ctypes.byref(_pointers(self._found))

    def _of(self, slots: Ints, first: Ints, count: Ints) -> Attention:
        return type(self)(self._kernel, self._cache, self._pages, slots, first, count)

    def _write(self, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]) -> None:
        pools = self._cache.keys[layer], self._cache.values[layer]
        new = [plain(each, like=pools[0]) for each in (key, value)]
        self._kernel.put(self._argument, *map(heads, (*new, *pools)), len(key))

    def _look(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        query = plain(query, like=keys)
        out = room(query)
        self._kernel.attend(
            self._argument,
            *map(heads, (query, keys, values, out)),
            len(keys),
            len(query) // len(keys),
            scale,
            window or 0,
            torch.get_num_threads(),
        )
        return out

    def _go_on(self) -> None:
        self._found.place[...] += 1
        self._found.position[...] += 1


def _pointers(found: Stretches) -> _Stretches:
    arrays: list[Ints] = [getattr(found, name) for name in ARRAYS]
    return _Stretches(len(found.place), len(found.page_begin) - 1, *(array.ctypes.data for array in arrays))
