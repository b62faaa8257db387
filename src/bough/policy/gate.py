"""The gated activations of a transformers model in machine code of our own (gate.cpp), on a CPU.

What a model does in two operations, and in four on the way back, is one pass over its numbers.
"""

import copy
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
from bough.policy.fused import Fused, fits, learns, same

REGISTER = 16
"""Numbers that the code takes at a time."""

CHUNK = 1024
"""Of those, for a thread at a time."""


class Gate(Fused):
    """A feed-forward block: down(silu(gate(x)) * up(x))."""

    @classmethod
    def of(cls, module: nn.Module) -> Fused | None:
        """The same in code, or None for another block: asked without its matrices, which may be large."""
        matrices = ("gate_proj", "up_proj", "down_proj")
        if not type(module).__name__.endswith("MLP") or not all(hasattr(module, name) for name in matrices):
            return None
        bare = copy.copy(module)
        stand_ins = dict(zip(matrices, (nn.Identity(), nn.Tanh(), nn.Softsign()), strict=True))
        vars(bare)["_modules"] = {**dict(module.named_children()), **stand_ins}
        numbers = torch.linspace(-8, 8, 64)
        truth = nn.functional.softsign(nn.functional.silu(numbers) * numbers.tanh())
        try:
            said = bare(numbers)
        except (AttributeError, TypeError):  # it asks more of its matrices than products
            return None
        return cls(module) if same(said, truth) else None

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., W] -> the same."""
        module: Any = self._module
        gate, up = module.gate_proj(hidden), module.up_proj(hidden)
        code = _code(math.gcd(REGISTER, gate.shape[-1])) if fits(gate, up) else None
        if code is None:
            return module.down_proj(module.act_fn(gate) * up)
        gate, up = gate.contiguous(), up.contiguous()
        if learns(gate, up):
            apply = cast("Callable[..., Tensor]", _Gated.apply)  # pyright: ignore[reportUnknownMemberType]
            return module.down_proj(apply(gate, up, code))
        return module.down_proj(_forward(gate, up, code))


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor, code: ctypes.CDLL) -> Tensor:
        ctx.save_for_backward(gate, up)
        ctx.code = code
        return _forward(gate, up, code)

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        gate, up = ctx.saved_tensors
        pull, to_gate, to_up = grad_outputs[0].contiguous(), torch.empty_like(gate), torch.empty_like(up)
        given = pointers(gate, up, pull, to_gate, to_up)
        ctx.code.backward(*given, gate.numel(), torch.get_num_threads())
        return to_gate, to_up, None


def _forward(gate: Float[Tensor, "*n I"], up: Float[Tensor, "*n I"], code: ctypes.CDLL) -> Float[Tensor, "*n I"]:
    out = torch.empty_like(gate)
    code.forward(*pointers(gate, up, out), gate.numel(), torch.get_num_threads())
    return out


@cache
def _code(width: int) -> ctypes.CDLL | None:
    code = code_for(Path(__file__).with_name("gate.cpp"), torch.float32, width, f"CHUNK={CHUNK}")
    if code is not None:
        at, many = ctypes.c_void_p, ctypes.c_int64
        code.forward.argtypes = (*(at,) * 3, many, ctypes.c_int32)
        code.backward.argtypes = (*(at,) * 5, many, ctypes.c_int32)
        code.forward.restype = code.backward.restype = None
    return code
