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
        return self._normed(hidden, None)[0]

    def beside(self, hidden: Tensor, more: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """[..., W], or the sum of two: normalised, and as it is. Gradients that come back to both are added at once."""
        if self.plain() and fits(hidden, hidden if more is None else more) and _code(self.weight.shape[0]) is not None:
            return self._normed(hidden, more)
        both = hidden if more is None else hidden + more
        return self._module(both), both

    def _normed(self, hidden: Tensor, more: Tensor | None) -> tuple[Tensor, Tensor]:
        if learns(hidden, more, self.weight):
            apply = cast("Callable[..., tuple[Tensor, Tensor]]", _Normed.apply)  # pyright: ignore[reportUnknownMemberType]
            return apply(hidden, more, self.weight, self)
        return _forward(self, hidden, more, self.weight)[:2]

    def plain(self) -> bool:
        """Whether nothing is lost when the code is called in the norm's stead."""
        return self.weight.dtype == torch.float32 and unheard(self._module)

    @property
    def weight(self) -> Tensor:
        """[W]."""
        return cast("Tensor", self._module.weight)


class _Normed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, more: Tensor | None, weight: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
        normed, both, scales = _forward(norm, hidden, more, weight)
        ctx.save_for_backward(both, weight, scales)
        ctx.unit, ctx.twice = norm.unit, more is not None
        ctx.set_materialize_grads(False)
        return normed, both

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        pull, back = cast("tuple[Tensor | None, ...]", grad_outputs)
        to_weight = None
        if pull is not None:
            both, weight, scales = cast("tuple[Tensor, ...]", ctx.saved_tensors)
            back, to_weight = _backward(both, weight, scales, ctx.unit, pull, back)
        return back, back if ctx.twice else None, to_weight, None


def _forward(
    norm: Norm, hidden: Float[Tensor, "*n W"], more: Float[Tensor, "*n W"] | None, weight: Float[Tensor, " W"]
) -> tuple[Float[Tensor, "*n W"], Float[Tensor, "*n W"], Float[Tensor, " r"]]:
    """Rows normalised, the rows, and by what each was multiplied."""
    given = (hidden.contiguous(), None if more is None else more.contiguous())
    both = given[0] if more is None else torch.empty_like(given[0])
    normed, rows = torch.empty_like(both), hidden.numel() // weight.shape[0]
    scales, code = hidden.new_empty(rows), cast("ctypes.CDLL", _code(weight.shape[0]))
    places = (*_places(*given), *pointers(weight, both, normed, scales))
    code.forward(*places, rows, norm.eps, norm.unit, torch.get_num_threads())
    return normed, hidden if more is None else both, scales


def _backward(
    rows: Float[Tensor, "*n W"],
    weight: Float[Tensor, " W"],
    scales: Float[Tensor, " r"],
    unit: float,
    pull: Float[Tensor, "*n W"],
    beside: Float[Tensor, "*n W"] | None,
) -> tuple[Float[Tensor, "*n W"], Float[Tensor, " W"]]:
    """The gradients of rows, which may have another part, and of the weight, given that of the rows normalised."""
    given = (rows.contiguous(), weight, scales, pull.contiguous(), None if beside is None else beside.contiguous())
    to_rows, code = torch.empty_like(given[0]), cast("ctypes.CDLL", _code(weight.shape[0]))
    to_weight = weight.new_empty((-(-len(scales) // CHUNK), len(weight)))
    places = (*_places(*given), *pointers(to_rows, to_weight))
    code.backward(*places, len(scales), unit, torch.get_num_threads())
    return to_rows, to_weight.sum(0)


def _places(*tensors: Tensor | None) -> list[int | None]:
    return [None if each is None else each.data_ptr() for each in tensors]


@cache
def _code(width: int) -> ctypes.CDLL | None:
    code = code_for(Path(__file__).with_name("norm.cpp"), torch.float32, width, f"CHUNK={CHUNK}")
    if code is not None:
        at, many, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
        code.forward.argtypes = (*(at,) * 6, many, number, number, ctypes.c_int32)
        code.backward.argtypes = (*(at,) * 7, many, number, ctypes.c_int32)
        code.forward.restype = code.backward.restype = None
    return code


def _eps(module: nn.Module) -> float:
    return float(getattr(module, "variance_epsilon", getattr(module, "eps", 0.0)))
