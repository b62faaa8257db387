"""Attention of a forest by stock flash kernels: one call for each run of keys, merged by their log-sum-exp."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bough.batch.glances import Glance

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

    one column of parts after the other: the second of two weighs sigmoid(l_2 - l_1).

    Backward, each call is given the merged o and l instead of its own, which makes its gradients those of the whole.

    Args:
        glances: All that is seen, column by column.
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
        mixed, total = _token_by_token(query, wide), torch.empty(query.shape[:2], dtype=wide)
        part, weight = mixed[:, :0], total[:, :0]
        for column, some in groupby(glances, lambda each: each.column):
            shown = list(some)
            parts = (_flash(*_runs(each, query, keys, values), 0.0, each.causal, scale=scale) for each in shown)
            if column and len(shown) == 1:
                out, lse = (_run(whole, shown[0].queries, shown[0].rows) for whole in (mixed, total))
                found, log = next(parts)
                _merge(out, lse, found.to(wide), log)
                continue
            if column and not part.shape[1]:
                # Where there is nothing it weighs nothing, but must be a number.
                part, weight = torch.zeros_like(mixed), torch.empty_like(total)
            into = (part, weight) if column else (mixed, total)
            span = slice(min(each.queries[0] for each in shown), max(each.queries[1] for each in shown))
            into[1][:, span].fill_(-torch.inf)
            for each, found in zip(shown, parts, strict=True):
                for whole, run in zip(into, found, strict=True):
                    _run(whole, each.queries, each.rows).copy_(run)
            if column:
                _merge(mixed[:, span], total[:, span], part[:, span], weight[:, span])
        mixed = mixed.to(query.dtype)
        ctx.save_for_backward(query, key, value, mixed, total)
        ctx.glances, ctx.scale = glances, scale
        return mixed

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        pull = grad_outputs[0]
        # All that the kernel asks for.
        pull = pull if pull.stride(-1) == 1 else pull.contiguous()
        query, key, value, mixed, total = ctx.saved_tensors
        groups = len(query) // len(key)
        keys, values = (each.repeat_interleave(groups, 0) if groups > 1 else each for each in (key, value))
        wide = total.dtype
        to_query, to_key, to_value = (_token_by_token(each, wide) for each in (query, keys, values))
        for glance in ctx.glances:
            q, k, v = _runs(glance, query, keys, values)
            out, lse, grad = (_run(each, glance.queries, glance.rows) for each in (mixed, total, pull))
            grads = _flash_backward(grad, q, k, v, out, lse, 0.0, glance.causal, scale=ctx.scale)
            queried = _run(to_query, glance.queries, glance.rows)
            queried.add_(grads[0]) if glance.column else queried.copy_(grads[0])
            # Each key is in one glance alone.
            for whole, part in zip((to_key, to_value), grads[1:], strict=True):
                _run(whole, glance.keys, glance.rows).copy_(part)
        if groups > 1:
            to_key, to_value = (each.unflatten(0, (-1, groups)).sum(1) for each in (to_key, to_value))
        return to_query.to(query.dtype), to_key.to(key.dtype), to_value.to(value.dtype), None, None


def _merge(mixed: Tensor, total: Tensor, part: Tensor, weight: Tensor) -> None:
    """Take a further part of [..., D], with the log-sum-exp [...] of its scores, into what there is."""
    mixed.lerp_(part, (weight - total).sigmoid_()[..., None])
    torch.logaddexp(total, weight, out=total)


def _token_by_token(like: Float[Tensor, "H U D"], dtype: torch.dtype) -> Float[Tensor, "H U D"]:
    """Room for as much, in the order in memory of what the kernel returns and a layer goes on with."""
    return torch.empty((like.shape[1], like.shape[0], like.shape[2]), dtype=dtype).transpose(0, 1)


_Span: TypeAlias = tuple[int, int]


def _runs(glance: Glance, query: Tensor, key: Tensor, value: Tensor) -> Iterator[Tensor]:
    for whole, span in ((query, glance.queries), (key, glance.keys), (value, glance.keys)):
        yield _run(whole, span, glance.rows)


def _run(whole: Tensor, span: _Span, rows: int) -> Tensor:
    """A run of tokens of [H, U, ...] as a view of [rows, H, tokens of a row, ...]."""
    size, (head, token, *rest) = (span[1] - span[0]) // rows, whole.stride()
    place = whole.storage_offset() + token * span[0]
    shape = (rows, len(whole), size, *whole.shape[2:])
    # In one step, as there are many runs.
    return whole.as_strided(shape, (token * size, head, token, *rest), place)
