"""Attention of one pass in machine code of our own (attend.cpp), on a CPU: nothing is copied, padded or merged."""

import ctypes
import warnings
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from bough.engine.attention import Attention
from bough.engine.cache import Cache
from bough.engine.machine import machine_code
from bough.engine.model import Model
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints
from bough.engine.stretches import Stretches

NUMBERS = {torch.float32: "float", torch.float64: "double"}

ARRAYS = ("place", "position", "page_begin", "page", "start", "filled", "query_begin", "token", "until")
"""Of `Stretches`, in the order in which the code has them."""


class _Stretches(ctypes.Structure):
    _fields_ = (
        ("tokens", ctypes.c_int64),
        ("stretches", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ARRAYS),
    )


class _Heads(ctypes.Structure):
    _fields_ = (("at", ctypes.c_void_p), ("head", ctypes.c_int64), ("token", ctypes.c_int64))


def kernel_for(model: Model) -> ctypes.CDLL | None:
    """The code for a model's keys and values; None where there is none, and torch's operations are to be used.

    Compiling it takes seconds, once a machine. Warns where that fails.
    """
    if model.device.type != "cpu" or model.dtype not in NUMBERS or model.head_width % 4:
        return None
    try:
        return _kernel(NUMBERS[model.dtype], model.head_width)
    except OSError as error:
        warnings.warn(
            f"generation takes about a third longer than it needs to: {error}; install g++ or clang++", stacklevel=2
        )
        return None


@cache
def _kernel(number: str, width: int) -> ctypes.CDLL:
    defines = (f"NUMBER={number}", f"WIDTH={width}", f"PAGE={PAGE_TOKENS}")
    code = machine_code(Path(__file__).with_name("attend.cpp"), *defines)
    many, found = ctypes.c_int64, ctypes.POINTER(_Stretches)
    code.put.argtypes = (found, _Heads, _Heads, _Heads, _Heads, many)
    code.attend.argtypes = (found, _Heads, _Heads, _Heads, _Heads, many, many, ctypes.c_double, many, ctypes.c_int32)
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
        new = [_rows(each, like=pools[0]) for each in (key, value)]
        self._kernel.put(self._argument, *map(_heads, (*new, *pools)), len(key))

    def _look(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        query = _rows(query, like=keys)
        heads, tokens, width = query.shape
        # Token by token, as it is read next.
        out = query.new_empty((tokens, heads, width)).transpose(0, 1)
        self._kernel.attend(
            self._argument,
            *map(_heads, (query, keys, values, out)),
            len(keys),
            heads // len(keys),
            scale,
            window or 0,
            torch.get_num_threads(),
        )
        return out

    def _go_on(self) -> None:
        self._found.place[...] += 1
        self._found.position[...] += 1


def _rows(tensor: Float[Tensor, "H U D"], *, like: Tensor) -> Float[Tensor, "H U D"]:
    """What the code may read: it looks at neither type nor strides."""
    if tensor.dtype != like.dtype:
        raise TypeError(f"attention: got numbers of {tensor.dtype}; need {like.dtype}, as the model said")
    return tensor if tensor.stride(2) == 1 else tensor.contiguous()


def _heads(tensor: Float[Tensor, "H U D"]) -> _Heads:
    return _Heads(tensor.data_ptr(), tensor.stride(0), tensor.stride(1))


def _pointers(found: Stretches) -> _Stretches:
    arrays: list[Ints] = [getattr(found, name) for name in ARRAYS]
    return _Stretches(len(found.place), len(found.page_begin) - 1, *(array.ctypes.data for array in arrays))
