"""What an engine is built from, a policy; and the protocol of its model, whose caller computes the attention."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Attend(Protocol):
    """Attention, computed by the caller of the model."""

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        """(layer, query [H, U, D], key [K, U, D], value [K, U, D], scale) -> [H, U, D]; after the rotary embedding.

        A query sees the last `window` tokens of its sequence, itself included, or all.
        """
        ...


@runtime_checkable
class Model(Protocol):
    """A causal model without gradients."""

    @property
    def vocab_tokens(self) -> int:
        """V."""
        ...

    @property
    def context_tokens(self) -> int:
        """Most positions of the model."""
        ...

    @property
    def packs(self) -> bool:
        """Whether the caller computes its attention; else it is a `SequenceModel`."""
        ...

    @property
    def layers(self) -> int:
        """The number of calls of `attend` in a forward pass, with layer 0, 1, ..."""
        ...

    @property
    def kv_heads(self) -> int:
        """K."""
        ...

    @property
    def head_width(self) -> int:
        """D of `Attend`."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of keys and values."""
        ...

    @property
    def tokenizer(self) -> str | None:
        """The text of its `tokenizer.json`, for grammars; None where there is none."""
        ...

    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        rows: Int[Tensor, " m"] | None = None,
        attend_last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states of U tokens of concatenated sequences, or of the tokens `rows`.

        A model whose last layer can run for `rows` alone may call `attend_last` there in place of `attend`, with the
        queries, keys and values of all tokens; it returns [H, m, D].
        """
        ...

    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """Next-token logits, float32, or float64 when the model is."""
        ...

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy new weights in.

        Raises:
            ValueError: when names or shapes differ from the model's; the message has them.
        """
        ...


@runtime_checkable
class SequenceModel(Model, Protocol):
    """A causal model that runs its own forward pass, on whole texts."""

    @property
    def caches(self) -> bool:
        """Whether `decode` gives the hidden states of `states`."""
        ...

    def states(self, tokens: Int[Tensor, "B n"]) -> Float[Tensor, "B n W"]:
        """Final hidden states of B whole texts of one length."""
        ...

    def decode(self, tokens: Int[Tensor, "B n"], cache: object | None) -> tuple[Float[Tensor, "B n W"], object]:
        """Final hidden states of the next tokens of B texts of one length, and the cache with them.

        Args:
            tokens: [B, n]; without a cache the first of each text, else n is 1.
            cache: What the texts' last call returned.
        """
        ...

    def select_texts(self, cache: object, rows: Int[Tensor, " b"]) -> None:
        """Keep the texts `rows` of a cache, in this order."""
        ...


@runtime_checkable
class ServedPolicy(Protocol):
    """A policy as its engine sees it. Each engine takes the form of the model that it needs: a copy, or files."""

    @property
    def context_tokens(self) -> int:
        """Most positions of the model."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        ...

    def replica(self) -> Model:
        """An independent frozen copy of the current model."""
        ...

    def save(self, directory: Path) -> None:
        """Write config, weights and tokenizer as transformers reads them."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """Every weight by name; tied weights appear once."""
        ...
