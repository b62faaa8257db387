"""Rotations of queries and keys by their positions in machine code of our own (rotate.cpp), on a CPU.

What a model does in ten operations, and in as many on the way back, is one pass over its numbers. Its attention layers
call a function for it by its name: here they run the same code, in which the name means another function.
"""

import ctypes
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bough.machine import Heads, code_for, heads, plain, pointers, room
from bough.policy.fused import Fused, fits, learns, same

CHUNK = 64
"""Tokens for a thread at a time."""

ROTATE = "apply_rotary_pos_emb"
"""The name of the function in transformers."""

Rotate: TypeAlias = Callable[..., tuple[Tensor, Tensor]]


class Rotated(Fused):
    """An attention layer whose function of that name turns the halves of heads by angles."""

    @classmethod
    def of(cls, module: nn.Module) -> Fused | None:
        """The same in code, or None for a layer that has no such function, or another."""
        return None if _with_code(type(module)) is None else cls(module)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the layer says."""
        forward = cast("Callable[..., Any]", _with_code(type(self._module)))
        return forward(self._module, *args, **named)


@cache
def _with_code(kind: type[nn.Module]) -> Callable[..., Any] | None:
    """The forward pass of a class of modules, with rotations by the code; None if it has none, or others."""
    forward = kind.forward
    own = getattr(forward, "__globals__", {}).get(ROTATE)
    if not isinstance(forward, FunctionType) or own is None or ROTATE not in forward.__code__.co_names:
        return None
    query, key, cos, sin = torch.randn(4, 1, 2, 3, 16, generator=torch.Generator().manual_seed(0))
    cos, sin = cos[:, 0], sin[:, 0]
    turned = [each * cos + torch.cat((-each[..., 8:], each[..., :8]), -1) * sin for each in (query, key)]
    try:
        said = own(query, key, cos, sin)
    except (RuntimeError, TypeError, ValueError):  # it is told other things, or in other shapes
        return None
    if not all(map(same, said, turned)):
        return None
    known = {**forward.__globals__, ROTATE: partial(rotate, own)}
    again = FunctionType(forward.__code__, known, forward.__name__, forward.__defaults__, forward.__closure__)
    again.__kwdefaults__ = forward.__kwdefaults__
    return again


def rotate(own: Rotate, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, **settings: Any) -> tuple[Tensor, Tensor]:
    """Turn queries and keys.

    Args:
        own: Does it for everything but float32 on a CPU.
        query: [1, H, U, D].
        key: [1, K, U, D].
        cos: [1, U, D].
        sin: [1, U, D].
        settings: Anything else that `own` is told.
    """
    alike = query.shape[0] == 1 and key.shape[2:] == query.shape[2:] == cos.shape[1:] and not settings
    code = _code(query.shape[-1]) if alike and fits(query, key, cos, sin) else None
    if code is None:
        return own(query, key, cos, sin, **settings)
    cos, sin = cos.contiguous(), sin.contiguous()
    if learns(query, key):
        apply = cast("Rotate", _Rotated.apply)  # pyright: ignore[reportUnknownMemberType]
        return apply(query, key, cos, sin, code)
    return _turn(code.forward, query, key, cos, sin)


class _Rotated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, code: ctypes.CDLL) -> Any:
        ctx.save_for_backward(cos, sin)
        ctx.code = code
        return _turn(code.forward, query, key, cos, sin)

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return *_turn(ctx.code.backward, *grad_outputs, *ctx.saved_tensors), None, None, None


def _turn(
    code: Callable[..., None],
    query: Float[Tensor, "1 H U D"],
    key: Float[Tensor, "1 K U D"],
    cos: Float[Tensor, "1 U D"],
    sin: Float[Tensor, "1 U D"],
) -> tuple[Float[Tensor, "1 H U D"], Float[Tensor, "1 K U D"]]:
    given = [plain(each[0], like=query) for each in (query, key)]
    made = [room(each) for each in given]
    counts = (*map(len, given), query.shape[2], torch.get_num_threads())
    code(*map(heads, given), *pointers(cos, sin), *map(heads, made), *counts)
    return made[0][None], made[1][None]


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
