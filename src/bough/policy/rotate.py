"""Rotations of queries and keys by their positions in machine code of our own (rotate.cpp), on a CPU.

What a model does in ten operations, and in as many on the way back, is one pass over its numbers.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bough.machine import Heads, code_for, heads, plain, pointers, room

CHUNK = 64
"""Tokens for a thread at a time."""

Pair: TypeAlias = tuple[Tensor, Tensor]
"""Queries [H, U, D] and keys [K, U, D]."""


def rotate(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    """Turn the halves of heads by angles; float32 on a CPU, where `turns` says that there is code for their width.

    Args:
        query: [H, U, D].
        key: [K, U, D].
        cos: [1, U, D].
        sin: [1, U, D].
    """
    apply = cast("Callable[..., Pair]", _Rotated.apply)  # pyright: ignore[reportUnknownMemberType]
    return apply(query, key, cos, sin)


class _Rotated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Any:
        ctx.save_for_backward(cos, sin)
        return turn(query, key, cos, sin)

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return *turn(*grad_outputs, *ctx.saved_tensors, back=True), None, None


def turn(
    query: Float[Tensor, "H U D"],
    key: Float[Tensor, "K U D"],
    cos: Float[Tensor, "1 U D"],
    sin: Float[Tensor, "1 U D"],
    *,
    back: bool = False,
    in_place: bool = False,
) -> tuple[Float[Tensor, "H U D"], Float[Tensor, "K U D"]]:
    """The same without gradients; `back` turns those of what was turned into those of what it was.

    `in_place` is for those whose heads have their numbers side by side.
    """
    given = [plain(each, like=query) for each in (query, key)]
    made = given if in_place else [room(each) for each in given]
    cos, sin = cos.contiguous(), sin.contiguous()
    code: Any = _code(query.shape[-1])
    run = code.backward if back else code.forward
    counts = (*map(len, given), query.shape[1], torch.get_num_threads())
    run(*map(heads, given), *pointers(cos, sin), *map(heads, made), *counts)
    return made[0], made[1]


def turns(width: int) -> bool:
    """Whether there is code for heads of so many numbers."""
    return _code(width) is not None


@cache
def _code(width: int) -> ctypes.CDLL | None:
    half, odd = divmod(width, 2)
    source = Path(__file__).with_name("rotate.cpp")
    code = None if odd else code_for(source, torch.float32, half, f"CHUNK={CHUNK}")
    if code is not None:
        at, many = ctypes.c_void_p, ctypes.c_int64
        code.forward.argtypes = (Heads, Heads, at, at, Heads, Heads, many, many, many, ctypes.c_int32)
        code.backward.argtypes, code.forward.restype, code.backward.restype = code.forward.argtypes, None, None
    return code
