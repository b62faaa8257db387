"""Attention over a stretch of a forest in machine code of our own (attend.cpp), on a CPU."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bough.batch.kept import Past
from bough.batch.stretch import Stretch
from bough.machine import Heads, code_for, heads, plain, room

ARRAYS = ("plot", "query_begin", "query_end", "key_begin", "key_end", "position")
"""Of `Runs`, in the order in which the code has them."""


class _Runs(ctypes.Structure):
    _fields_ = (("past", ctypes.c_int64), ("plots", ctypes.c_int64), *((name, ctypes.c_void_p) for name in ARRAYS))


class _Pair(ctypes.Structure):
    _fields_ = (("past", Heads), ("own", Heads), ("place", ctypes.c_void_p))


class Runs:
    """The runs of a stretch as the code reads them."""

    def __init__(self, stretch: Stretch) -> None:
        """Get ready."""
        begin = stretch.runs[:, 2]
        # Texts that share nothing: each begins with a root.
        roots = np.flatnonzero(stretch.position[begin] == 0)
        self._arrays = [
            np.ascontiguousarray(array, dtype=np.int64)
            for array in (np.append(roots, len(begin)), *stretch.runs.T, stretch.position)
        ]
        runs = _Runs(len(stretch.past), len(roots), *(array.ctypes.data for array in self._arrays))
        self.argument = ctypes.byref(runs)


@cache
def kernel(dtype: torch.dtype, width: int) -> ctypes.CDLL | None:
    """The code for heads of such numbers; None where there is none, and torch's operations are to be used.

    Warns where it cannot be compiled.
    """
    code = code_for(
        Path(__file__).with_name("attend.cpp"), dtype, width, without="updates take longer than they need to"
    )
    if code is not None:
        many, settings = ctypes.c_int64, (ctypes.c_double, ctypes.c_int64, ctypes.c_int32)
        given = (ctypes.POINTER(_Runs), Heads, _Pair, _Pair, Heads, Heads)
        code.forward.argtypes = (*given, many, many, *settings)
        code.backward.argtypes = (*given, Heads, Heads, _Pair, _Pair, many, many, *settings)
        code.forward.restype = code.backward.restype = None
    return code


def native(
    code: ctypes.CDLL,
    runs: Runs,
    query: Float[Tensor, "H n D"],
    key: Float[Tensor, "K n D"],
    value: Float[Tensor, "K n D"],
    past: Past | None,
    scale: float,
    window: int | None = None,
) -> Float[Tensor, "H n D"]:
    """Softmax attention of the n queries of a stretch to all the keys that each sees.

    Args:
        code: The kernel.
        runs: Of the stretch.
        query: [H, n, D], on a CPU.
        key: [K, n, D]; K divides H.
        value: [K, n, D].
        past: What they see from before.
        scale: Of the scores.
        window: How many tokens of its text a query sees at most, or all.
    """
    if past is not None:
        past = replace(past, key=plain(past.key, like=query), value=plain(past.value, like=query))
    apply = cast("Callable[..., Tensor]", _Native.apply)  # pyright: ignore[reportUnknownMemberType]
    return apply(query, key, value, past, code, runs, scale, window)


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        past: Past | None,
        code: ctypes.CDLL,
        runs: Runs,
        scale: float,
        window: int | None,
    ) -> Tensor:
        query, key, value = (plain(each, like=query) for each in (query, key, value))
        mixed = room(query)
        lse = query.new_empty(query.shape[1::-1]).T
        settings = (len(key), len(query) // len(key), scale, window or 0, torch.get_num_threads())
        code.forward(runs.argument, heads(query), *_pairs(past, key, value), heads(mixed), heads(lse), *settings)
        ctx.save_for_backward(query, key, value, mixed, lse)
        ctx.code, ctx.runs, ctx.settings, ctx.past = code, runs, settings, past
        return mixed

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        query, key, value, mixed, lse = ctx.saved_tensors
        past: Past | None = ctx.past
        pull = plain(grad_outputs[0], like=query)
        to_query, to_key, to_value = (room(each) for each in (query, key, value))
        given = (heads(query), *_pairs(past, key, value), *map(heads, (mixed, lse, pull, to_query)))
        if past is None:
            learned, made = [], _pairs(None, to_key, to_value)
        else:
            learned = [room(each[:, : len(past.at)]) for each in (past.key, past.value)]
            made = [_Pair(heads(old), heads(own)) for old, own in zip(learned, (to_key, to_value), strict=True)]
        ctx.code.backward(ctx.runs.argument, *given, *made, *ctx.settings)
        if past is not None and past.learn is not None:
            for number, slope in enumerate(learned):
                past.learn(number, slope)
        return to_query, to_key, to_value, None, None, None, None, None


def _pairs(past: Past | None, key: Tensor, value: Tensor) -> list[_Pair]:
    """Of the past and a stretch's own. Where the past is nothing, nobody looks there."""
    if past is None:
        return [_Pair(heads(own), heads(own)) for own in (key, value)]
    both = ((past.key, key), (past.value, value))
    return [_Pair(heads(kept), heads(own), past.at.ctypes.data) for kept, own in both]
