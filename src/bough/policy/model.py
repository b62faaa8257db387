"""Runs a transformers causal language model on many concatenated sequences, in one of two ways.

packed         its caller computes the attention, and so determines which token sees which: the model runs without
               padding, mask, cache and dropout. Layers call `caller_attention`, registered as `ATTENTION`, which
               passes queries, keys and values to the `Attend` of the forward pass
path by path   its own forward pass on whole texts, for layers whose work on a token is more than such attention
"""

import copy
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from bough.kernels.linear import linear, use_fast_linear
from bough.policy.own_forward import decode, states_of_texts
from bough.policy.traits import Traits

ATTENTION = "bough"
"""The `attn_implementation` under which transformers finds `caller_attention`."""

HARMLESS = frozenset({"position_ids", "cache_position", "is_causal"})
"""Arguments of attention functions that do not change the result."""


@runtime_checkable
class Attend(Protocol):
    """Attention, computed by the caller of the model."""

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        """(layer, query [H, U, D], key [K, U, D], value [K, U, D], scale) -> [H, U, D], after the rotary embedding.

        K divides H; query head h reads key head h // (H // K). A query sees the last `window` tokens of its
        sequence, itself included, or all.
        """
        ...


@runtime_checkable
class ShardedTrunk(Protocol):
    """The trunk of a model whose weights are sharded."""

    def __call__(self, **inputs: object) -> Tensor:
        """The last hidden states [1, U, W] of the trunk's inputs."""
        ...

    def gather_ends(self) -> None:
        """Gather the weights of the head."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRequest:
    """The argument that a forward pass sends through the model's layers to `caller_attention`.

    Attributes:
        attend: Computes the attention.
        rows: [m], the only tokens whose output the last layer computes; None is all.
        attend_last: Replaces `attend` in the last layer, if given, and returns `rows` alone.
        attended: [H, U, D], the result of `attend`, if already computed.
    """

    attend: Attend
    rows: Tensor | None = None
    attend_last: Attend | None = None
    attended: Tensor | None = None


class CausalModel:
    """A causal language model that runs packed or path by path.

    Attributes:
        model: The transformers model.
        traits: The properties of its forward pass.
        shards: Its trunk, if its weights are sharded.
    """

    def __init__(self, model: PreTrainedModel, traits: Traits | None = None) -> None:
        self.shards: ShardedTrunk | None = None
        # Evaluation mode turns dropout off; gradients still flow.
        self.model = model.eval()
        self._recomputes = False
        self.traits = traits or Traits(attention=_attention_of(model))
        self.attend_with(self.traits.attention if self.traits.by_path else ATTENTION)
        if layers := self.layers:
            # A copy of a model already has the hook; a second hook has no effect.
            layers[-1].register_forward_pre_hook(skip_last_layer, with_kwargs=True)
        use_fast_linear(model)

    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        rows: Int[Tensor, " m"] | None = None,
        attend_last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states, after the last norm, of U concatenated tokens, or of the tokens `rows`.

        They are multiplied by the model's `logit_scale`, so that the output layer alone gives the logits.

        Args:
            tokens: [U], ids below `vocab_tokens`; of whole texts, each from its first token, unless the model `packs`.
            positions: [U], the number of tokens before each in its own sequence.
            attend: Computes the attention of a model that `packs`.
            rows: [m], the tokens whose states are returned; None is all. The last layer skips most work on the others.
            attend_last: Replaces `attend` in the last layer where it runs for `rows` alone; returns their rows.
        """
        if not self.packs:
            hidden = states_of_texts(self.shards or self._trunk, tokens, positions)
            return self._scaled(hidden if rows is None else hidden[rows])
        few = self.skips_last_layer and rows is not None
        request = AttentionRequest(attend=attend)
        if few:
            request = AttentionRequest(attend=attend, rows=rows, attend_last=attend_last)
        trunk = self.shards or self._trunk
        hidden = trunk(input_ids=tokens[None], position_ids=positions[None], use_cache=False, bough=request)[0]
        return self._scaled(hidden if few or rows is None else hidden[rows])

    def decode(self, tokens: Int[Tensor, "B n"], cache: object | None) -> tuple[Float[Tensor, "B n W"], object]:
        """Final hidden states by the model's own forward pass, and its cache.

        Args:
            tokens: [B, n], the next tokens of B texts; without a cache they are the first.
            cache: What the texts' last call returned.
        """
        hidden, cache = decode(trunk_of(self.model), tokens, cache)
        return self._scaled(hidden), cache

    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """Next-token logits, float32 (float64 if the model is)."""
        return logits(hidden, *self.head(), self.traits.logit_cap)

    def head(self) -> tuple[Float[Tensor, "V W"], Float[Tensor, " V"] | None]:
        """The weight, and the bias if there is one, of the output layer. With shards, a collective."""
        if self.shards is not None:
            self.shards.gather_ends()
        return self._head.weight, self._head.bias

    @property
    def head_shape(self) -> torch.Size:
        """(V, W)."""
        return self._head.weight.shape

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self._head.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of weights and hidden states."""
        return self._head.weight.dtype

    @property
    def vocab_tokens(self) -> int:
        """V, the rows of the head; may exceed the tokenizer's vocabulary."""
        return self._head.weight.shape[0]

    @property
    def packs(self) -> bool:
        """Whether texts with a common prefix share a forward pass, with the attention of the caller."""
        return not self.traits.by_path

    @property
    def skips_last_layer(self) -> bool:
        """Whether the last layer skips most of its work on tokens that are not in `rows`."""
        return self.traits.skips_last_layer and not self._recomputes

    @skips_last_layer.setter
    def skips_last_layer(self, can: bool) -> None:
        self.traits = replace(self.traits, skips_last_layer=can)

    def attend_with(self, implementation: str) -> None:
        """Choose the attention by its name in transformers."""
        model: Any = self.model
        model.set_attn_implementation(implementation)

    def recompute(self, on: bool) -> None:
        """Switch gradient checkpointing: the backward pass computes each layer's activations again.

        Raises:
            ValueError: when the model's layers do not support it, or compute something else in training mode.
        """
        model: Any = self.model
        before = self._few_states() if on else None
        if on and hasattr(model, "activation_checkpointing_enable"):
            model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
        elif on:  # the name in older versions of transformers
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if on and hasattr(model, "disable_input_require_grads"):
            # Reentrant checkpoints need these hooks, of a local function, which can't be pickled.
            model.disable_input_require_grads()
        self._recomputes = on
        for layer in self.layers:
            # Layers recompute in training mode only. Their submodules stay in evaluation mode: no dropout.
            layer.training = on
        if before is not None and not torch.allclose(before, self._few_states(), rtol=1e-2, atol=1e-2):
            self.recompute(False)
            raise ValueError(
                "recompute: got layers that compute something else in training mode, such as dropout; need layers that "
                "do not. Set the model's dropout to 0, or optimizer.recompute=false"
            )

    def shadow(self) -> "CausalModel":
        """A model with the same weights and separate gradients."""
        memo: dict[int, Any] = {
            id(weight): nn.Parameter(weight.detach(), requires_grad=weight.requires_grad)
            for weight in self.model.parameters()
        }
        memo |= {id(buffer): buffer for buffer in self.model.buffers()}
        again = copy.copy(self)
        again.model = copy.deepcopy(self.model, memo)
        return again

    @property
    def layers(self) -> list[GradientCheckpointingLayer]:
        """The layers, first to last."""
        return [module for module in self.model.modules() if isinstance(module, GradientCheckpointingLayer)]

    @torch.no_grad()
    def _few_states(self) -> Tensor:
        """Final hidden states of a short text."""
        place = torch.arange(8, device=self.device)
        return self.hidden(place % self.vocab_tokens, place, causal)

    def _scaled(self, hidden: Tensor) -> Tensor:
        return hidden if self.traits.logit_scale == 1 else hidden * self.traits.logit_scale

    def _trunk(self, **inputs: object) -> Tensor:
        return trunk_of(self.model)(**inputs).last_hidden_state

    @property
    def _head(self) -> nn.Linear:
        model: Any = self.model
        return model.get_output_embeddings()


def trunk_of(model: PreTrainedModel) -> Any:
    """The model without its output layer."""
    base: Any = model.base_model
    # Some models of text that are a part of a larger one have no base of their own.
    return cast("Any", model).model if base is model else base


def _attention_of(model: PreTrainedModel) -> str:
    found: Any = getattr(model.config, "_attn_implementation", None)
    return "sdpa" if found in (None, ATTENTION) else found


def logits(
    hidden: Float[Tensor, "M W"],
    weight: Float[Tensor, "V W"],
    bias: Float[Tensor, " V"] | None,
    cap: float | None = None,
) -> Float[Tensor, "M V"]:
    """Logits of an output layer, float32 (float64 if the layer is), or cap * tanh(logits / cap) of them."""
    found = linear(hidden, weight, bias)
    found = found if found.dtype == torch.float64 else found.float()
    return found if cap is None else cap * torch.tanh(found / cap)


def caller_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    bough: AttentionRequest | None = None,
    **settings: object,
) -> tuple[Tensor, None]:
    """An attention function of transformers that calls the forward pass's `Attend`.

    Args:
        module: The attention layer; it has a `layer_idx`.
        query: [1, H, U, D].
        key: [1, K, U, D].
        value: [1, K, U, D].
        attention_mask: None; the caller determines which token sees which.
        scaling: Multiplies the scores; None means D ** -0.5.
        dropout: 0.
        sliding_window: The most tokens that a query sees, itself included.
        bough: The forward pass's request.
        settings: Further arguments of the layer.

    Returns:
        [1, U, H, D], and no attention weights.

    Raises:
        ValueError: when there is no request, or the layer needs what an `Attend` does not compute (capped scores,
            sinks, a mask).
    """
    name = type(module).__name__
    if bough is None:
        raise ValueError(
            f"{name}: got no attention function; the model must forward `**kwargs` to its attention layers"
        )
    causal_here = settings.get("is_causal", getattr(module, "is_causal", True))
    extra = {**settings, "attention_mask": attention_mask, "dropout": dropout or None}
    needs = [each for each, given in extra.items() if each not in HARMLESS and given is not None and given is not False]
    needs += ["is_causal=False"] if causal_here is False else []
    if needs:
        raise ValueError(
            f"{name}: got attention with {', '.join(needs)}; need causal attention without caps, sinks or biases"
        )
    if query.shape[0] != 1 or value.shape != key.shape or key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"{name}: got query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}; need one "
            "batch row and heads of one width"
        )
    mixed = bough.attended
    if mixed is None:
        scale = scaling if scaling is not None else query.shape[-1] ** -0.5
        layer = int(getattr(module, "layer_idx"))  # noqa: B009
        mixed = bough.attend(layer, query[0], key[0], value[0], scale, window=sliding_window)
    return mixed.transpose(0, 1).unsqueeze(0).contiguous(), None


# transformers builds no mask for an attention without a registered mask function.
cast("Any", AttentionInterface).register(ATTENTION, caller_attention)


class _AttentionDone(Exception):
    """Ends the last layer's run over all tokens after its attention."""


def skip_last_layer(
    module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A forward pre-hook of the last layer: where the request has `rows`, the layer runs for these tokens alone.

    The other tokens contribute only keys and values. The layer first runs for all tokens up to its attention, which
    raises; then it runs for `rows`, with that attention's result.
    """
    request: AttentionRequest | None = named.get("bough")
    if request is None or request.rows is None:
        return args, named
    rows, attend, attend_last = request.rows, request.attend, request.attend_last
    found: list[Tensor] = []

    def attend_and_leave(
        layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        if attend_last is not None:
            found.append(attend_last(layer, query, key, value, scale, window=window))
        else:
            found.append(attend(layer, query, key, value, scale, window=window)[:, rows])
        raise _AttentionDone

    with suppress(_AttentionDone):
        module.forward(*args, **{**named, "bough": AttentionRequest(attend=attend_and_leave)})
    tokens = args[0].shape[1] if args else named["hidden_states"].shape[1]
    few = {name: _rows(given, tokens, rows) for name, given in named.items()}
    few["bough"] = AttentionRequest(attend=attend, attended=found[0])
    return tuple(_rows(given, tokens, rows) for given in args), few


def _rows(given: Any, tokens: int, rows: Tensor) -> Any:
    """Select the entries of `rows` from a layer's argument with one entry per token, [1, tokens, ...]."""
    if isinstance(given, tuple):
        return tuple(_rows(each, tokens, rows) for each in cast("tuple[Any, ...]", given))
    of_tokens = isinstance(given, Tensor) and given.ndim > 1 and given.shape[1] == tokens
    return torch.index_select(given, 1, rows) if of_tokens else given


def causal(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None) -> Tensor:
    """An `Attend` for one sequence: every token sees itself and the tokens before it."""
    del layer
    place = torch.arange(query.shape[1], device=query.device)
    back = place[:, None] - place
    sees = (back >= 0) if window is None else (back >= 0) & (back < window)
    return torch.nn.functional.scaled_dot_product_attention(
        query[None], key[None], value[None], attn_mask=sees, scale=scale, enable_gqa=True
    )[0]
