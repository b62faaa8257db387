"""Keys and values that outlive the stretch they were made in, and their gradients."""

from collections.abc import Callable

import torch
from torch import Tensor

from bough.tree import Ints


class Kept:
    """Keys and values of L tokens in every layer.

    Attributes:
        keys: By layer, [K, L, D].
        values: By layer, [K, L, D].
    """

    def __init__(self, tokens: int) -> None:
        """Make room for L tokens."""
        self._tokens = tokens
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}
        self._slopes: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, layer: int, at: Ints, key: Tensor, value: Tensor) -> None:
        """Keep [K, l, D] each at l places."""
        for kept, new in ((self.keys, key), (self.values, value)):
            if layer not in kept:
                kept[layer] = new.new_zeros((len(new), self._tokens, new.shape[-1]))
            kept[layer][:, at] = new

    def read(self, layer: int, at: Ints) -> tuple[Tensor, Tensor]:
        """[K, c, D] each: what is kept at c places."""
        return self.keys[layer][:, at], self.values[layer][:, at]

    def pass_on(
        self, own: tuple[Ints, Ints], past: Ints, layer: int, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """[K, c + n, D] each: what is kept at `past`, then a stretch's own; of these, own[0] are kept at own[1]."""
        here, there = own
        self.write(layer, there, key[:, here], value[:, here])
        old_key, old_value = self.read(layer, past)
        return torch.cat([old_key, key], dim=1), torch.cat([old_value, value], dim=1)

    def slope(self, layer: int, at: Ints) -> tuple[Tensor, Tensor]:
        """[K, l, D] each: the gradient of what is kept at l places, as far as stretches have handed it back."""
        key, value = self._slopes[layer]
        return key[:, at], value[:, at]

    def add(self, layer: int, at: Ints, key: Tensor, value: Tensor) -> None:
        """Add to the gradient of what is kept at c places."""
        if layer not in self._slopes:
            kept = self.keys[layer]
            wide = torch.float64 if kept.dtype == torch.float64 else torch.float32
            self._slopes[layer] = (torch.zeros_like(kept, dtype=wide), torch.zeros_like(kept, dtype=wide))
        for slope, more in zip(self._slopes[layer], (key, value), strict=True):
            slope[:, at] += more


class Lesson:
    """What a stretch sees from before it, as leaves of its graph, until it went backward."""

    def __init__(self, kept: Kept, own: tuple[Ints, Ints], past: Ints) -> None:
        """For a stretch that sees what is kept at `past`; of its own tokens, those at own[0] are kept at own[1]."""
        self._kept, self._own, self._past = kept, own, past
        self._leaves: dict[int, tuple[Tensor, Tensor]] = {}

    def join(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """[K, c + n, D] each: the past, then the stretch's own.

        May be called twice with the same, where activations are computed again: both get the same leaves.
        """
        here, there = self._own
        if len(here):
            for own, slope in zip((key, value), self._kept.slope(layer, there), strict=True):
                if own.requires_grad:
                    own.register_hook(_adding(here, slope))  # pyright: ignore[reportUnknownMemberType]
        if not len(self._past):
            return key, value
        if layer not in self._leaves:
            past = self._kept.read(layer, self._past)
            self._leaves[layer] = (past[0].requires_grad_(), past[1].requires_grad_())
        old_key, old_value = self._leaves[layer]
        return torch.cat([old_key, key], dim=1), torch.cat([old_value, value], dim=1)

    def end(self) -> None:
        """The stretch went backward: hand the gradient back of what it saw."""
        for layer, leaves in self._leaves.items():
            key, value = (torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves)
            self._kept.add(layer, self._past, key, value)


def _adding(at: Ints, slope: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook that adds to a gradient at some tokens."""

    def add(grad: Tensor) -> Tensor:
        more = grad.clone()
        more[:, at] += slope.to(grad.dtype)
        return more

    return add
