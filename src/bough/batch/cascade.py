"""Attention of a forest by stock flash kernels: one call for each run of keys, merged by their log-sum-exp."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bough.batch.stretch import Glance

# What scaled_dot_product_attention calls on a CPU: torch has no public name for one that tells its log-sum-exp.
_flash: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # pyright: ignore
_flash_backward: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward  # pyright: ignore


def cascade(
    glances: Sequence[Glance],
    query: Float[Tensor, "H n D"],
    key: Float[Tensor, "K m D"],
    value: Float[Tensor, "K m D"],
    scale: float,
) -> Float[Tensor, "H n D"]:
    """Softmax attention of n queries to all the keys that some glance shows them; no mask, and no key is copied.

    The parts of a softmax over parts of the keys, o_i with log-sum-exp l_i, are merged exactly:

        l = log sum_i exp l_i        o = sum_i o_i exp(l_i - l)

    Backward, each call is given the merged o and l instead of its own, which makes its gradients those of the whole.

    Args:
        glances: All that is seen; for each query, the one that opens it comes first.
        query: [H, n, D], on a CPU.
        key: [K, m, D]; K divides H.
        value: [K, m, D].
        scale: Of the scores.
    """
    apply = cast("Callable[..., Tensor]", _Cascade.apply)  # pyright: ignore[reportUnknownMemberType]
    return apply(query, key, value, glances, scale)


class _Cascade(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, glances: Sequence[Glance], scale: float) -> Tensor:
        groups = len(query) // len(key)
        keys, values = (each.repeat_interleave(groups, 0) if groups > 1 else each for each in (key, value))
        wide = torch.float64 if query.dtype == torch.float64 else torch.float32
        mixed = torch.empty(query.shape, dtype=wide)
        total = torch.empty(query.shape[:2], dtype=wide)
        for glance in glances:
            q, k, v = _runs(glance, query, keys, values)
            part, weight = _flash(q, k, v, 0.0, glance.causal, scale=scale)
            out, lse = _run(mixed, glance.queries, glance.rows), _run(total, glance.queries, glance.rows)
            if glance.opens:
                out.copy_(part)
                lse.copy_(weight)
                continue
            both = torch.logaddexp(lse, weight)
            out.mul_((lse - both).exp_()[..., None])
            out.addcmul_(part.to(wide), (weight - both).exp_()[..., None])
            lse.copy_(both)
        mixed = mixed.to(query.dtype)
        ctx.save_for_backward(query, key, value, mixed, total)
        ctx.glances, ctx.scale = glances, scale
        return mixed

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        pull = grad_outputs[0].contiguous()
        query, key, value, mixed, total = ctx.saved_tensors
        groups = len(query) // len(key)
        keys, values = (each.repeat_interleave(groups, 0) if groups > 1 else each for each in (key, value))
        wide = total.dtype
        to_query, to_key, to_value = (torch.zeros(each.shape, dtype=wide) for each in (query, keys, values))
        for glance in ctx.glances:
            q, k, v = _runs(glance, query, keys, values)
            out, lse, grad = (_run(each, glance.queries, glance.rows) for each in (mixed, total, pull))
            grads = _flash_backward(grad, q, k, v, out, lse, 0.0, glance.causal, scale=ctx.scale)
            spans = (glance.queries, glance.keys, glance.keys)
            for whole, span, part in zip((to_query, to_key, to_value), spans, grads, strict=True):
                _run(whole, span, glance.rows).add_(part)
        if groups > 1:
            to_key, to_value = (each.unflatten(0, (-1, groups)).sum(1) for each in (to_key, to_value))
        return to_query.to(query.dtype), to_key.to(key.dtype), to_value.to(value.dtype), None, None


_Span: TypeAlias = tuple[int, int]


def _runs(glance: Glance, query: Tensor, key: Tensor, value: Tensor) -> Iterator[Tensor]:
    for whole, span in ((query, glance.queries), (key, glance.keys), (value, glance.keys)):
        yield _run(whole, span, glance.rows)


def _run(whole: Tensor, span: _Span, rows: int) -> Tensor:
    """A run of tokens of [H, U, ...] as a view of [rows, H, tokens of a row, ...]."""
    run = whole[:, span[0] : span[1]]
    return run.view(len(run), rows, -1, *run.shape[2:]).transpose(0, 1)
