"""Attention over a chunk of a packed prefix tree, forward and backward, in C++ (tree_attention.cpp)."""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from bough.kernels.heads import Heads, empty_heads, heads, load_kernel, readable

ARRAYS = ("tree", "query_begin", "query_end", "key_begin", "key_end", "position")
"""Arrays of `KeyRuns`, in the order of the C++ struct."""


class _Runs(ctypes.Structure):
    _fields_ = (("prefix", ctypes.c_int64), ("trees", ctypes.c_int64), *((name, ctypes.c_void_p) for name in ARRAYS))


class _Pair(ctypes.Structure):
    _fields_ = (("prefix", Heads), ("own", Heads), ("place", ctypes.c_void_p))


@runtime_checkable
class Prefix(Protocol):
    """Keys and values from before a chunk; see `batch.kv_store.KVPrefix`."""

    @property
    def key(self) -> Tensor:
        """[K, L, D]."""
        ...

    @property
    def value(self) -> Tensor:
        """[K, L, D]."""
        ...

    @property
    def at(self) -> NDArray[np.int64]:
        """[c], which of the L tokens the chunk attends to, ascending."""
        ...

    @property
    def add_gradient(self) -> Callable[[int, Tensor], None] | None:
        """Receives the gradient of the keys (0) and of the values (1), [K, c, D] each."""
        ...


class KeyRuns:
    """The runs of keys of a chunk as the kernel reads them."""

    def __init__(self, runs: NDArray[np.int64], position: NDArray[np.int64], prefix: int) -> None:
        """Lay the arrays out.

        Args:
            runs: [R, 4], as in `batch.chunk.Chunk`.
            position: [c + n], the depth of each token of the prefix, then of the chunk.
            prefix: c.
        """
        begin = runs[:, 2]
        roots = np.flatnonzero(position[begin] == 0)
        self._arrays = [
            np.ascontiguousarray(array, dtype=np.int64) for array in (np.append(roots, len(begin)), *runs.T, position)
        ]
        self.argument = ctypes.byref(_Runs(prefix, len(roots), *(array.ctypes.data for array in self._arrays)))


@cache
def tree_kernel(dtype: torch.dtype, width: int) -> ctypes.CDLL | None:
    """The compiled kernel for heads of `width` elements; None where there is none."""
    source = Path(__file__).with_name("tree_attention.cpp")
    code = load_kernel(source, dtype, width, slower="updates take longer than they need to")
    if code is not None:
        count, settings = ctypes.c_int64, (ctypes.c_double, ctypes.c_int64, ctypes.c_int32)
        inputs = (ctypes.POINTER(_Runs), Heads, _Pair, _Pair, Heads, Heads)
        code.forward.argtypes = (*inputs, count, count, *settings)
        code.backward.argtypes = (*inputs, Heads, Heads, _Pair, _Pair, count, count, *settings)
        code.forward.restype = code.backward.restype = None
    return code


def tree_attention(
    code: ctypes.CDLL,
    runs: KeyRuns,
    query: Float[Tensor, "H n D"],
    key: Float[Tensor, "K n D"],
    value: Float[Tensor, "K n D"],
    prefix: Prefix | None,
    scale: float,
    window: int | None = None,
) -> Float[Tensor, "H n D"]:
    """Softmax attention of a chunk's n queries to all the keys that each sees.

    Args:
        code: The kernel.
        runs: Of the chunk.
        query: [H, n, D], on a CPU.
        key: [K, n, D]; K divides H.
        value: [K, n, D].
        prefix: Keys and values from before the chunk.
        scale: Multiplies the scores.
        window: The most tokens of its text that a query sees, itself included; None is all.

    Raises:
        TypeError: when keys or values have another dtype than the queries.
    """
    apply = cast("Callable[..., Tensor]", _TreeAttention.apply)  # pyright: ignore[reportUnknownMemberType]
    return apply(query, key, value, prefix, code, runs, scale, window)


class _TreeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        prefix: Prefix | None,
        code: ctypes.CDLL,
        runs: KeyRuns,
        scale: float,
        window: int | None,
    ) -> Tensor:
        query, key, value = (readable(each, like=query) for each in (query, key, value))
        stored = () if prefix is None else tuple(readable(each, like=query) for each in (prefix.key, prefix.value))
        mixed = empty_heads(query)
        lse = query.new_empty(query.shape[1::-1]).T
        settings = (len(key), len(query) // len(key), scale, window or 0, torch.get_num_threads())
        pairs = _pairs(prefix, stored, (key, value))
        code.forward(runs.argument, heads(query), *pairs, heads(mixed), heads(lse), *settings)
        ctx.save_for_backward(query, key, value, mixed, lse)
        ctx.code, ctx.runs, ctx.settings, ctx.prefix, ctx.stored = code, runs, settings, prefix, stored
        return mixed

    @staticmethod
    @once_differentiable  # untyped in torch
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        query, key, value, mixed, lse = ctx.saved_tensors
        prefix: Prefix | None = ctx.prefix
        gradient = readable(grad_outputs[0], like=query)
        to_query, *to_own = (empty_heads(each) for each in (query, key, value))
        pairs = _pairs(prefix, ctx.stored, (key, value))
        inputs = (heads(query), *pairs, *map(heads, (mixed, lse, gradient, to_query)))
        to_prefix = [] if prefix is None else [empty_heads(each[:, : len(prefix.at)]) for each in ctx.stored]
        outputs = [_Pair(heads(old), heads(own)) for old, own in zip(to_prefix or to_own, to_own, strict=True)]
        ctx.code.backward(ctx.runs.argument, *inputs, *outputs, *ctx.settings)
        if prefix is not None and prefix.add_gradient is not None:
            for number, gradient in enumerate(to_prefix):
                prefix.add_gradient(number, gradient)
        return to_query, *to_own, None, None, None, None, None


def _pairs(prefix: Prefix | None, stored: tuple[Tensor, ...], own: tuple[Tensor, Tensor]) -> list[_Pair]:
    """Keys and values of the prefix and of the chunk. Without a prefix the kernel never reads its address."""
    if prefix is None:
        return [_Pair(heads(each), heads(each)) for each in own]
    at = prefix.at.ctypes.data
    return [_Pair(heads(old), heads(each), at) for old, each in zip(stored, own, strict=True)]
