"""Rotations of queries and keys by their positions in machine code of our own (rotate.cpp), on a CPU.

What a model does in ten operations, and in as many on the way back, is one pass over its numbers; norms of heads before
they are turned are part of it.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bough.machine import Heads, code_for, heads, plain, pointers, room
from bough.policy.norm import Norm

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
    given = (plain(query, like=query), plain(key, like=query))
    made = given if in_place else (room(given[0]), room(given[1]))
    _run(given, made, cos, sin, (_Norm(), _Norm()), back=back)
    return made


def norm_and_turn(
    given: Pair,
    weights: Sequence[Float[Tensor, " D"]],
    norms: Sequence[Norm],
    cos: Float[Tensor, "1 U D"],
    sin: Float[Tensor, "1 U D"],
) -> tuple[Pair, Pair]:
    """Queries and keys normed and turned; and by what the norms multiplied them, [U, H] and [U, K].

    Args:
        given: Queries [H, U, D] and keys [K, U, D], whose heads have their numbers side by side.
        weights: [D] each, of their norms.
        norms: What else these are.
        cos: Of the angles.
        sin: Of the angles.
    """
    made, tokens = (room(given[0]), room(given[1])), given[0].shape[1]
    scales = (cos.new_empty((tokens, len(given[0]))), cos.new_empty((tokens, len(given[1]))))
    told = [_Norm(*pointers(*each), *_numbers(norm)) for norm, *each in zip(norms, weights, scales, strict=True)]
    _run(given, made, cos, sin, told)
    return made, scales


def turn_and_norm_back(
    pulls: Pair,
    rows: Sequence[Float[Tensor, "_ U D"]],
    scales: Sequence[Float[Tensor, "U _"]],
    weights: Sequence[Float[Tensor, " D"]],
    norms: Sequence[Norm],
    cos: Float[Tensor, "1 U D"],
    sin: Float[Tensor, "1 U D"],
) -> tuple[Pair, Pair]:
    """The gradients of queries and keys, and of the weights of their norms, given those of what they became.

    Args:
        pulls: [H, U, D] and [K, U, D].
        rows: What was given.
        scales: What was said of it.
        weights: As there, like all that follows.
        norms: Of queries and of keys.
        cos: [1, U, D].
        sin: [1, U, D].
    """
    given = (plain(pulls[0], like=rows[0]), plain(pulls[1], like=rows[1]))
    made, chunks = (room(given[0]), room(given[1])), -(-cos.shape[1] // CHUNK)
    to_weights = (cos.new_empty((chunks, cos.shape[2])), cos.new_empty((chunks, cos.shape[2])))
    told = [
        _Norm(*pointers(*each), *_numbers(norm), heads(row), to_weight.data_ptr())
        for norm, row, to_weight, *each in zip(norms, rows, to_weights, weights, scales, strict=True)
    ]
    _run(given, made, cos, sin, told, back=True)
    return made, (to_weights[0].sum(0), to_weights[1].sum(0))


def turns(width: int) -> bool:
    """Whether there is code for heads of so many numbers."""
    return _code(width) is not None


class _Norm(ctypes.Structure):
    """How heads are normed; not at all without a weight."""

    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("unit", ctypes.c_double),
        ("eps", ctypes.c_double),
        ("rows", Heads),
        ("to_weight", ctypes.c_void_p),
    )


def _numbers(norm: Norm) -> tuple[float, float]:
    return norm.unit, norm.eps


def _run(given: Pair, made: Pair, cos: Tensor, sin: Tensor, norms: Sequence[_Norm], *, back: bool = False) -> None:
    cos, sin = cos.contiguous(), sin.contiguous()
    code: Any = _code(cos.shape[-1])
    run = code.backward if back else code.forward
    counts = (*map(len, given), cos.shape[1], torch.get_num_threads())
    run(*map(heads, given), *pointers(cos, sin), *map(heads, made), *norms, *counts)


@cache
def _code(width: int) -> ctypes.CDLL | None:
    half, odd = divmod(width, 2)
    source = Path(__file__).with_name("rotate.cpp")
    code = None if odd else code_for(source, torch.float32, half, f"CHUNK={CHUNK}")
    if code is not None:
        at, many = ctypes.c_void_p, ctypes.c_int64
        code.forward.argtypes = (Heads, Heads, at, at, Heads, Heads, _Norm, _Norm, many, many, many, ctypes.c_int32)
        code.backward.argtypes, code.forward.restype, code.backward.restype = code.forward.argtypes, None, None
    return code
