"""What an engine runs: a causal model that reads tokens laid end to end and lets the caller do the attention."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Attend(Protocol):
    """Attention, done by whoever laid the tokens out."""

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        """(layer, query [H, U, D], key [K, U, D], value [K, U, D], scale) -> [H, U, D]; positions are rotated in.

        Of its text a query sees the last `window` tokens, itself among them, or all.
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
        """Most positions the model can read."""
        ...

    @property
    def layers(self) -> int:
        """How many times `attend` is called in a forward pass, with layer 0, 1, ..."""
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
        """Where tensors live."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Of keys and values."""
        ...

    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        wanted: Int[Tensor, " m"] | None = None,
        last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states of U tokens of any number of sequences laid end to end, or of those `wanted`.

        A model that can spare the others its last layer may there call `last` in the place of `attend`: it is told of
        all tokens, as ever, and answers for those wanted, [H, m, D].
        """
        ...

    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """Next-token logits, float32, or float64 when the model is."""
        ...

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy new weights in.

        Raises:
            ValueError: when names or shapes differ from the model's; names them.
        """
        ...


@runtime_checkable
class Compilable(Protocol):
    """A model of which there is a faster form."""

    def compile(self) -> None:
        """From now on run compiled code, with the same results but for rounding.

        Raises:
            ValueError: when that cannot be made here.
        """
        ...
