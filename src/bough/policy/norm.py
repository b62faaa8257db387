"""Root mean square norms of a transformers model in machine code of our own (norm.cpp), on a CPU.

What a model does in six operations, and in a dozen on the way back, is one pass over its numbers.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bough.machine import code_for, pointers
from bough.policy.fused import Fused, fits, learns, same, unheard

CHUNK = 128
"""Rows over which the code sums up the gradient of a weight."""


class Norm(Fused):
    """A root mean square norm whose weight has `unit` added to it, 0 or 1; `eps` is added to the mean of squares."""

    def __init__(self, module: nn.Module, unit: float) -> None:
        """Take the place of a norm's forward pass."""
        super().__init__(module)
        self.unit, self.eps = unit, _eps(module)

    @classmethod
    def of(cls, module: nn.Module) -> "Norm | None":
        """The same in code, or None for another norm."""
        weight = getattr(module, "weight", None)
        if not type(module).__name__.endswith("RMSNorm") or not isinstance(weight, Tensor) or weight.ndim != 1:
            return None
        chance = torch.Generator().manual_seed(0)
        rows = torch.randn(4, len(weight), generator=chance, dtype=torch.float64).to(weight.dtype)
        truth = rows.double() * (rows.double().square().mean(-1, keepdim=True) + _eps(module)).rsqrt()
        for unit in (0.0, 1.0):
            if same(module(rows), truth * (weight.double() + unit)):
                return cls(module, unit)
        return None

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., W] -> the same, normalised."""
        module, weight = self._module, self.weight
        if not fits(hidden) or weight.dtype != torch.float32 or _code(weight.shape[0]) is None:
            return type(module).forward(module, hidden)
        if learns(hidden, weight):
            apply = cast("Callable[..., Tensor]", _Normed.apply)  # pyright: ignore[reportUnknownMemberType]
            return apply(hidden, weight, self)
        return self.forward(hidden.contiguous(), weight)[0]

    def plain(self) -> bool:
        """Whether nothing is lost when the code is called in the norm's stead."""
        return self.weight.dtype == torch.float32 and unheard(self._module)

    @property
    def weight(self) -> Tensor:
        """[W]."""
        return cast("Tensor", self._module.weight)

    def forward(
        self, hidden: Float[Tensor, "*n W"], weight: Float[Tensor, " W"]
    ) -> tuple[Float[Tensor, "*n W"], Float[Tensor, " r"]]:
        """Rows that lie end to end, normalised, and by what each was multiplied."""
        normed, rows = torch.empty_like(hidden), hidden.numel() // weight.shape[0]
        scales, code = hidden.new_empty(rows), cast("ctypes.CDLL", _code(weight.shape[0]))
        code.forward(*pointers(hidden, weight, normed, scales), rows, self.eps, self.unit, torch.get_num_threads())
        return normed, scales

    def backward(
        self,
        hidden: Float[Tensor, "*n W"],
        weight: Float[Tensor, " W"],
        scales: Float[Tensor, " r"],
        pull: Float[Tensor, "*n W"],
    ) -> tuple[Float[Tensor, "*n W"], Float[Tensor, " W"]]:
        """The gradients of rows and weight, given that of the rows normalised, end to end as well."""
        to_hidden, code = torch.empty_like(hidden), cast("ctypes.CDLL", _code(weight.shape[0]))
        to_weight = weight.new_empty((-(-len(scales) // CHUNK), len(weight)))
        given = pointers(hidden, weight, scales, pull, to_hidden, to_weight)
        code.backward(*given, len(scales), self.unit, torch.get_num_threads())
        return to_hidden, to_weight.sum(0)


class _Normed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, norm: Norm) -> Tensor:
        hidden = hidden.contiguous()
        normed, scales = norm.forward(hidden, weight)
        ctx.save_for_backward(hidden, weight, scales)
        ctx.norm = norm
        return normed

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return *ctx.norm.backward(*ctx.saved_tensors, grad_outputs[0].contiguous()), None


@cache
def _code(width: int) -> ctypes.CDLL | None:
    code = code_for(Path(__file__).with_name("norm.cpp"), torch.float32, width, f"CHUNK={CHUNK}")
    if code is not None:
        at, many, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
        code.forward.argtypes = (*(at,) * 4, many, number, number, ctypes.c_int32)
        code.backward.argtypes = (*(at,) * 6, many, number, ctypes.c_int32)
        code.forward.restype = code.backward.restype = None
    return code


def _eps(module: nn.Module) -> float:
    return float(getattr(module, "variance_epsilon", getattr(module, "eps", 0.0)))
