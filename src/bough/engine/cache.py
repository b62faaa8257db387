"""Keys and values of what the slots have read."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.engine.model import Model
from bough.engine.pages import PAGE_TOKENS


class Cache:
    """T tokens for every layer, in pages; grown when more is asked for.

    Memory is zero until it is written: masked attention multiplies it by zero, which a nan would survive.

    Attributes:
        keys: Per layer, [K, T, D]; machine code has those of a page turned round, [D, PAGE_TOKENS] in their place.
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
        """Grow to at least so many tokens."""
        heads, old, width = self.keys[0].shape
        if tokens <= old:
            return
        for pool in (self.keys, self.values):
            for layer, page in enumerate(pool):
                pool[layer] = page.new_zeros((heads, tokens, width))
                pool[layer][:, :old] = page

    def move(self, source: Int[Tensor, " P"], target: Int[Tensor, " P"]) -> None:
        """Copy pages to where others were."""
        for pool in (*self.keys, *self.values):
            pages = pool.view(len(pool), -1, PAGE_TOKENS * pool.shape[-1])
            pages.index_copy_(1, target, pages.index_select(1, source))

    def write(
        self, layer: int, places: Int[Tensor, " U"], key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]
    ) -> None:
        """Put U tokens where they belong."""
        self.keys[layer].index_copy_(1, places, key)
        self.values[layer].index_copy_(1, places, value)
