"""A frozen copy of a policy's model, for an engine."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bough.policy.adapters import merged
from bough.policy.check_architecture import AttentionShape
from bough.policy.model import Attend, CausalModel, causal, logits
from bough.policy.own_forward import select_texts


class Replica:
    """A causal model without gradients and without adapters. It shares no memory with its policy."""

    def __init__(
        self, model: CausalModel, shape: AttentionShape | None, context_tokens: int, tokenizer: str | None = None
    ) -> None:
        """Take over a model, with the result of `check_architecture`."""
        model.model.requires_grad_(False)
        model.recompute(False)
        if model.device.type == "cpu" and model.packs:
            _transpose_in_memory(model)
        self._model = model
        # transformers looks up both on every call.
        self._head, self._device = model.head(), model.device
        self._shape = shape
        self._context_tokens = context_tokens
        self.tokenizer = tokenizer
        """The text of its `tokenizer.json`; None where there is none."""

    @property
    def vocab_tokens(self) -> int:
        """V, the rows of the head; may exceed the tokenizer's vocabulary."""
        return self._model.vocab_tokens

    @property
    def context_tokens(self) -> int:
        """Most positions of the model."""
        return self._context_tokens

    @property
    def packs(self) -> bool:
        """Whether `hidden` takes texts that share a prefix; else it takes whole texts."""
        return self._model.packs

    @property
    def logit_cap(self) -> float | None:
        """See `Traits`."""
        return self._model.traits.logit_cap

    @property
    def layers(self) -> int:
        """The number of calls of `attend` in a forward pass, with layer 0, 1, ...; 0 unless the model `packs`."""
        return 0 if self._shape is None else self._shape.layers

    @property
    def kv_heads(self) -> int:
        """K of `Attend`; 0 unless the model `packs`."""
        return 0 if self._shape is None else self._shape.kv_heads

    @property
    def head_width(self) -> int:
        """D of `Attend`; 0 unless the model `packs`."""
        return 0 if self._shape is None else self._shape.head_width

    @property
    def caches(self) -> bool:
        """Whether `decode` gives the hidden states of `states`."""
        return self._model.traits.caches

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self._device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of keys and values."""
        return self._model.dtype

    @torch.no_grad()
    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        rows: Int[Tensor, " m"] | None = None,
        attend_last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states; see `CausalModel.hidden`."""
        return self._model.hidden(tokens, positions, attend, rows, attend_last)

    @torch.no_grad()
    def states(self, tokens: Int[Tensor, "B n"]) -> Float[Tensor, "B n W"]:
        """Final hidden states of B whole texts of one length, by the model's own forward pass."""
        positions = torch.arange(tokens.shape[1], device=tokens.device).repeat(len(tokens))
        return self._model.hidden(tokens.flatten(), positions, causal).view(*tokens.shape, -1)

    @torch.no_grad()
    def decode(self, tokens: Int[Tensor, "B n"], cache: object | None) -> tuple[Float[Tensor, "B n W"], object]:
        """Final hidden states by the model's own forward pass, and its cache; see `CausalModel.decode`."""
        return self._model.decode(tokens, cache)

    def select_texts(self, cache: object, rows: Int[Tensor, " b"]) -> None:
        """Keep the texts `rows` of a cache, in this order."""
        select_texts(cache, rows)

    def head(self) -> tuple[Float[Tensor, "V W"], Float[Tensor, " V"] | None]:
        """The weight, and the bias if there is one, of the output layer."""
        return self._head

    @torch.no_grad()
    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """Next-token logits, float32 (float64 if the model is)."""
        return logits(hidden, *self._head, self.logit_cap)

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy new weights in, cast to the replica's dtype.

        Raises:
            ValueError: when names or shapes differ from the model's; names the first. No weight is copied then.
        """
        own = merged(self._model.model)
        check(weights, own, "Replica.load")
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def _transpose_in_memory(model: CausalModel) -> None:
    """Store the layers' weights in column-major order: products with few rows then need no packing of the matrix."""
    for module in model.model.base_model.modules():
        if isinstance(module, nn.Linear):
            module.weight.data = module.weight.t().contiguous().t()


def check(got: Mapping[str, Tensor], need: Mapping[str, Tensor], where: str) -> None:
    """Check the names and shapes of weights.

    Raises:
        ValueError: names the first tensor that is missing, unknown or of another shape.
    """
    for name, tensor in need.items():
        if name not in got:
            raise ValueError(f"{where}: got no {name!r}; need {tuple(tensor.shape)}, as the model has")
        if got[name].shape != tensor.shape:
            raise ValueError(
                f"{where}: got {name!r} of shape {tuple(got[name].shape)}; need {tuple(tensor.shape)}, as the model has"
            )
    for name in got:
        if name not in need:
            raise ValueError(f"{where}: got {name!r}, which the model does not have; need the same model")
