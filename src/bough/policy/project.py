"""The attention layers of a transformers model with all that comes before attention in one piece, on a CPU.

Queries, keys and values are products of the same rows; heads of the first two may be normed, and turn by their
positions. What a model does there in a dozen operations is five products and passes, and gradients that come back to
the rows are summed up within products.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear, softsign

from bough.policy.attention import Asked
from bough.policy.fused import Fused, bare, fits, learns, same
from bough.policy.norm import Norm
from bough.policy.product import multiply, products, slopes
from bough.policy.rotate import norm_and_turn, rotate, turn, turn_and_norm_back, turns

MATRICES, NORMS, OUT = ("q_proj", "k_proj", "v_proj"), ("q_norm", "k_norm"), "o_proj"
"""What layers call their parts."""

TOLD = {
    "hidden_states",
    "position_embeddings",
    "attention_mask",
    "past_key_values",
    "position_ids",
    "use_cache",
    "bough",
}
"""What layers may be told; anything else may mean something."""

Three: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Queries [H, U, D], keys [K, U, D] and values [K, U, D]."""


class Projected(Fused):
    """An attention layer of heads that are normed, or not, and turned by angles."""

    def __init__(self, module: nn.Module, norms: Sequence[Norm], layer: int, scale: float, window: int | None) -> None:
        """Take the place of a layer's forward pass.

        Args:
            module: The layer.
            norms: Of queries and of keys, or none.
            layer: Its number, as it says.
            scale: That it asks for.
            window: That it asks for.
        """
        super().__init__(module)
        self._norms, self._layer, self._scale, self._window = norms, layer, scale, window

    @classmethod
    def of(cls, module: nn.Module) -> Fused | None:
        """The same in one piece, or None for another layer: asked without its matrices, which may be large."""
        width: Any = getattr(module, "head_dim", None)
        named = _parts(module, NORMS)
        sizes: list[Any] = [getattr(each, "out_features", None) for each in _parts(module, (*MATRICES, OUT))]
        norms = [norm for norm in map(Norm.of, named) if norm is not None]
        if len(sizes) < 4 or None in (width, *sizes) or len(norms) != len(named) or len(norms) == 1:
            return None
        chance, spy = torch.Generator().manual_seed(0), _Spy()
        hidden, cos, sin = (torch.randn(1, 3, size, generator=chance) for size in (sizes[0], width, width))
        stand_ins = [nn.Identity(), _Part(sizes[1], torch.tanh), _Part(sizes[2], softsign)]
        layer = bare(module, **dict(zip(MATRICES, stand_ins, strict=True)), **{OUT: nn.Tanh()})
        told = {"hidden_states": hidden, "position_embeddings": (cos, sin), "attention_mask": None, "bough": Asked(spy)}
        try:
            said, _ = layer.forward(**told)
            heads = [each(hidden).view(3, -1, width).transpose(0, 1) for each in stand_ins]
            heads[: len(named)] = [norm(each) for norm, each in zip(named, heads, strict=False)]
            heads[:2] = [_turned(each, cos, sin) for each in heads[:2]]
        except (AttributeError, RuntimeError, TypeError, ValueError):  # it needs, or asks for, other things
            return None
        ours = [*heads, heads[0].tanh().transpose(0, 1).reshape(1, 3, -1)]
        return cls(module, norms, *spy.asked) if all(map(same, [*spy.heads, said], ours)) else None

    def __call__(self, *args: Any, **named: Any) -> tuple[Tensor, None]:
        """What the layer says of [1, U, W]: the same, and no attention weights."""
        module: Any = self._module
        if args or module.training or not _plain(named) or not turns(module.head_dim):
            own: Any = type(self._module).forward
            return own(module, *args, **named)
        asked: Asked = named["bough"]
        mixed = asked.attended
        if mixed is None:
            heads = self._heads(named["hidden_states"], *named["position_embeddings"])
            mixed = asked.attend(self._layer, *heads, self._scale, window=self._window)
        return module.o_proj(mixed.transpose(0, 1).reshape(1, mixed.shape[1], -1)), None

    def _heads(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Three:
        matrices = _parts(self._module, MATRICES)
        if products(*matrices) and all(norm.plain() for norm in self._norms):
            weights = [each.weight for each in (*matrices, *self._norms)]
            biases = [each.bias for each in matrices]
            given = (hidden, cos, sin, self._norms, *weights[:3], *biases, *weights[3:])
            if learns(hidden, *weights, *biases):
                apply = cast("Callable[..., Three]", _Projected.apply)  # pyright: ignore[reportUnknownMemberType]
                return apply(*given)
            return _project(*given, product=multiply)[0]
        heads = [each(hidden).reshape(hidden.shape[1], -1, cos.shape[-1]) for each in matrices]
        for at, norm in enumerate(_parts(self._module, NORMS)):
            heads[at] = norm(heads[at])
        query, key, value = (each.transpose(0, 1) for each in heads)
        return *rotate(query, key, cos, sin), value


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, cos: Tensor, sin: Tensor, norms: Sequence[Norm], *weights: Tensor | None
    ) -> Three:
        heads, kept = _project(hidden, cos, sin, norms, *weights)
        ctx.save_for_backward(hidden, cos, sin, *weights[:3], *weights[6:], *kept)
        ctx.norms = norms
        return heads

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        hidden, cos, sin, *saved = cast("tuple[Tensor, ...]", ctx.saved_tensors)
        to_query, to_key, to_value = cast("Three", grad_outputs)
        matrices, kept, to_norms = saved[:3], saved[3:], tuple[Tensor, ...]()
        if kept:
            weights, rows, scales = kept[:2], kept[2:4], kept[4:]
            heads, to_norms = turn_and_norm_back((to_query, to_key), rows, scales, weights, ctx.norms, cos, sin)
        else:
            heads = turn(to_query, to_key, cos, sin, back=True)
        pulls = [each.transpose(0, 1).flatten(1) for each in (*heads, to_value)]
        wanted = cast("Sequence[bool]", ctx.needs_input_grad)
        back, *to_matrices = slopes(hidden[0], matrices, pulls, (wanted[0], *wanted[4:7]))
        to_biases = [each.sum(0) if asked else None for each, asked in zip(pulls, wanted[7:10], strict=True)]
        return None if back is None else back[None], None, None, None, *to_matrices, *to_biases, *to_norms


def _project(
    hidden: Float[Tensor, "1 U W"],
    cos: Float[Tensor, "1 U D"],
    sin: Float[Tensor, "1 U D"],
    norms: Sequence[Norm],
    *weights: Tensor | None,
    product: Callable[..., Tensor] = linear,
) -> tuple[Three, tuple[Tensor, ...]]:
    """What is handed over; and where there are norms, what they were given, and by what they multiplied that.

    `weights` are of the three products, then their biases, then those of the norms; `product` multiplies.
    """
    query, key, value = (
        product(hidden[0], cast("Tensor", matrix), bias).view(hidden.shape[1], -1, cos.shape[-1]).transpose(0, 1)
        for matrix, bias in zip(weights[:3], weights[3:6], strict=True)
    )
    if not norms:
        return (*turn(query, key, cos, sin, in_place=True), value), ()
    turned, scales = norm_and_turn((query, key), cast("tuple[Tensor, ...]", weights[6:]), norms, cos, sin)
    return (*turned, value), (query, key, *scales)


def _parts(module: nn.Module, names: Sequence[str]) -> list[Any]:
    """Those of a module that it has."""
    parts = vars(module)["_modules"]
    return [parts[name] for name in names if name in parts]


def _plain(named: dict[str, Any]) -> bool:
    """Whether a layer is told of one text, in float32 on a CPU, and nothing unusual."""
    hidden, angles, nothing = (named.get(name) for name in ("hidden_states", "position_embeddings", "attention_mask"))
    if named.get("bough") is None or nothing is not None or named.get("past_key_values") is not None:
        return False
    if not named.keys() <= TOLD or hidden is None or angles is None:
        return False
    return fits(hidden, *angles) and len(hidden) == len(angles[0]) == 1


class _Spy:
    """Attends in no way, and remembers what it was handed."""

    heads: Sequence[Tensor] = ()
    asked: tuple[int, float, int | None] = (0, 0.0, None)

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        """Hand back the queries."""
        self.heads, self.asked = (query, key, value), (layer, scale, window)
        return query


class _Part(nn.Module):
    """Stands in for a product."""

    def __init__(self, size: int, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._size, self._function = size, function

    def forward(self, rows: Tensor) -> Tensor:
        """[..., W] -> [..., size]."""
        return self._function(rows[..., : self._size])


def _turned(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = heads.chunk(2, dim=-1)
    return heads * cos + torch.cat((-second, first), dim=-1) * sin
