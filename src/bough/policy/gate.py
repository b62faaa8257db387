"""The feed-forward blocks of a transformers model with their gated activations in machine code (gate.cpp), on a CPU.

What a model does there in two operations, and in four on the way back, is one pass over its numbers; the gradients that
come back through gates and through what they let through are summed up within products.
"""

import ctypes
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bough.machine import code_for, pointers
from bough.policy.fused import Fused, bare, fits, learns, same
from bough.policy.product import products, slopes

REGISTER = 16
"""Numbers that the code takes at a time."""

CHUNK = 1024
"""Of those, for a thread at a time."""

MATRICES = ("gate_proj", "up_proj", "down_proj")


class Gate(Fused):
    """A feed-forward block: down(silu(gate(x)) * up(x))."""

    @classmethod
    def of(cls, module: nn.Module) -> Fused | None:
        """The same in code, or None for another block: asked without its matrices, which may be large."""
        if not type(module).__name__.endswith("MLP") or not all(hasattr(module, name) for name in MATRICES):
            return None
        stand_ins = dict(zip(MATRICES, (nn.Identity(), nn.Tanh(), nn.Softsign()), strict=True))
        numbers = torch.linspace(-8, 8, 64)
        truth = nn.functional.softsign(nn.functional.silu(numbers) * numbers.tanh())
        try:
            said = bare(module, **stand_ins)(numbers)
        except (AttributeError, TypeError):  # it asks more of its matrices than products
            return None
        return cls(module) if same(said, truth) else None

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., W] -> the same."""
        module: Any = self._module
        gate, up = module.gate_proj, module.up_proj
        whole = fits(hidden) and products(gate, up) and learns(hidden, gate.weight, up.weight)
        if not whole or gate.bias is not None or up.bias is not None or _code(gate.out_features) is None:
            return module.down_proj(self._passed(gate(hidden), up(hidden)))
        apply = cast("Callable[..., Tensor]", _Through.apply)  # pyright: ignore[reportUnknownMemberType]
        return module.down_proj(apply(hidden, gate.weight, up.weight))

    def _passed(self, gate: Tensor, up: Tensor) -> Tensor:
        """[..., I] of what is let through."""
        if not fits(gate, up) or _code(gate.shape[-1]) is None:
            module: Any = self._module
            return module.act_fn(gate) * up
        gate, up = gate.contiguous(), up.contiguous()
        if not learns(gate, up):
            return _gated(gate, up)
        apply = cast("Callable[..., Tensor]", _Gated.apply)  # pyright: ignore[reportUnknownMemberType]
        return apply(gate, up)


class _Through(torch.autograd.Function):
    """Both products, and what comes through the gates."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, gate: Tensor, up: Tensor) -> Tensor:
        rows = hidden.reshape(-1, hidden.shape[-1])
        shut, let = rows @ gate.T, rows @ up.T
        ctx.save_for_backward(rows, gate, up, shut, let)
        return _gated(shut, let).view(*hidden.shape[:-1], -1)

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        rows, gate, up, shut, let = ctx.saved_tensors
        pull = grad_outputs[0]
        back, *others = slopes(rows, (gate, up), _slopes(shut, let, pull.contiguous()), ctx.needs_input_grad)
        return None if back is None else back.view(*pull.shape[:-1], -1), *others


class _Gated(torch.autograd.Function):
    """What comes out of the gates."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return _gated(gate, up)

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        gate, up = ctx.saved_tensors
        return _slopes(gate, up, grad_outputs[0].contiguous())


def _gated(gate: Float[Tensor, "*n I"], up: Float[Tensor, "*n I"]) -> Float[Tensor, "*n I"]:
    out, code = torch.empty_like(gate), cast("ctypes.CDLL", _code(gate.shape[-1]))
    code.forward(*pointers(gate, up, out), gate.numel(), torch.get_num_threads())
    return out


def _slopes(gate: Tensor, up: Tensor, pull: Tensor) -> tuple[Tensor, Tensor]:
    to_gate, to_up = torch.empty_like(gate), torch.empty_like(up)
    code = cast("ctypes.CDLL", _code(gate.shape[-1]))
    code.backward(*pointers(gate, up, pull, to_gate, to_up), gate.numel(), torch.get_num_threads())
    return to_gate, to_up


@cache
def _code(width: int) -> ctypes.CDLL | None:
    """For rows of so many numbers."""
    source, register = Path(__file__).with_name("gate.cpp"), math.gcd(REGISTER, width)
    code = code_for(source, torch.float32, register, f"CHUNK={CHUNK}")
    if code is not None:
        at, many = ctypes.c_void_p, ctypes.c_int64
        code.forward.argtypes = (*(at,) * 3, many, ctypes.c_int32)
        code.backward.argtypes = (*(at,) * 5, many, ctypes.c_int32)
        code.forward.restype = code.backward.restype = None
    return code
