"""The KV cache: keys and values of the slots' tokens."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.engine.model import Model


class KVCache:
    """Keys and values of T tokens in every layer, in pages.

    Unused memory is zero: masked attention multiplies it by zero, and a nan would stay a nan.

    Attributes:
        keys: Per layer, [K, T, D]; the C++ kernel stores the keys of a page transposed, [D, PAGE_TOKENS].
        values: Per layer, [K, T, D].
    """

    def __init__(self, model: Model) -> None:
        """Make an empty cache."""
        empty = torch.zeros((model.kv_heads, 0, model.head_width), dtype=model.dtype, device=model.device)
        self.keys: list[Float[Tensor, "K T D"]] = [empty] * model.layers
        self.values: list[Float[Tensor, "K T D"]] = [empty] * model.layers

    @property
    def tokens(self) -> int:
        """T."""
        return self.keys[0].shape[1]

    def reserve(self, tokens: int) -> None:
        """Grow to at least `tokens` tokens."""
        heads, old, width = self.keys[0].shape
        if tokens <= old:
            return
        for pool in (self.keys, self.values):
            for layer, page in enumerate(pool):
                pool[layer] = page.new_zeros((heads, tokens, width))
                pool[layer][:, :old] = page

    def clear(self, places: Int[Tensor, " U"]) -> None:
        """Zero the keys and values of U tokens at the cache positions `places`."""
        for layer in (*self.keys, *self.values):
            layer.index_fill_(1, places, 0)

    def write(
        self, layer: int, places: Int[Tensor, " U"], key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]
    ) -> None:
        """Write keys and values of U tokens at the cache positions `places`."""
        self.keys[layer].index_copy_(1, places, key)
        self.values[layer].index_copy_(1, places, value)
