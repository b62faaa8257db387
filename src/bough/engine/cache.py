"""Keys and values of what the slots have read."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.engine.model import Model

FIRST_ROWS = 8
FIRST_TOKENS = 128


class Cache:
    """R slots of L tokens for every layer, both grown by doubling when more is asked for.

    Memory is zero until it is written: masked attention multiplies it by zero, which a nan would survive.

    Attributes:
        keys: Per layer, [R, K, L, D].
        values: Per layer, [R, K, L, D].
    """

    def __init__(self, model: Model, *, most_rows: int, most_tokens: int) -> None:
        """Make an empty cache that may grow to R = `most_rows` and L = `most_tokens`."""
        self._most_rows, self._most_tokens = most_rows, most_tokens
        empty = torch.zeros((0, model.kv_heads, 0, model.head_width), dtype=model.dtype, device=model.device)
        self.keys: list[Float[Tensor, "R K L D"]] = [empty] * model.layers
        self.values: list[Float[Tensor, "R K L D"]] = [empty] * model.layers

    @property
    def length(self) -> int:
        """L."""
        return self.keys[0].shape[2]

    def reserve(self, rows: int, tokens: int) -> None:
        """Grow to at least so many slots of at least so many tokens."""
        old_rows, heads, old_tokens, width = self.keys[0].shape
        if rows <= old_rows and tokens <= old_tokens:
            return
        if rows > old_rows:
            rows = min(max(rows, 2 * old_rows, FIRST_ROWS), self._most_rows)
        if tokens > old_tokens:
            tokens = min(max(tokens, 2 * old_tokens, FIRST_TOKENS), self._most_tokens)
        for pages in (self.keys, self.values):
            for layer, page in enumerate(pages):
                pages[layer] = page.new_zeros((max(rows, old_rows), heads, max(tokens, old_tokens), width))
                pages[layer][:old_rows, :, :old_tokens] = page

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` tokens of one slot to another."""
        for pages in (self.keys, self.values):
            for page in pages:
                page[target, :, :tokens] = page[source, :, :tokens]

    def write(
        self,
        layer: int,
        slots: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        key: Float[Tensor, "K U D"],
        value: Float[Tensor, "K U D"],
    ) -> None:
        """Put U tokens where they belong."""
        self.keys[layer][slots, :, positions] = key.transpose(0, 1)
        self.values[layer][slots, :, positions] = value.transpose(0, 1)
