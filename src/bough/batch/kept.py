"""Keys and values that outlive the stretch they were made in, and their gradients."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from bough.tree import Ints


class Kept:
    """Keys and values of L tokens in every layer."""

    def __init__(self, tokens: int) -> None:
        """Make room for L tokens."""
        self._tokens = tokens
        self._keys: dict[int, Tensor] = {}
        self._values: dict[int, Tensor] = {}

    def write(self, layer: int, at: Ints, key: Tensor, value: Tensor) -> None:
        """Keep [K, l, D] each at l places."""
        for kept, new in ((self._keys, key), (self._values, value)):
            if layer not in kept:
                kept[layer] = new.new_zeros((len(new), self._tokens, new.shape[-1]))
            kept[layer][:, at] = new

    def read(self, layer: int, at: Ints) -> tuple[Tensor, Tensor]:
        """[K, c, D] each: what is kept at c places."""
        return self._keys[layer][:, at], self._values[layer][:, at]

    def pass_on(
        self, own: tuple[Ints, Ints], past: Ints, layer: int, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """[K, c + n, D] each: what is kept at `past`, then a stretch's own; of these, own[0] are kept at own[1]."""
        here, there = own
        self.write(layer, there, key[:, here], value[:, here])
        old_key, old_value = self.read(layer, past)
        return torch.cat([old_key, key], dim=1), torch.cat([old_value, value], dim=1)


class Lesson:
    """What a stretch sees from before it, as leaves of its graph, and what all later stretches have learned of it.

    What a later stretch sees from before this one, this one could see as well: it is on one path. So gradients are
    handed from stretch to stretch, and never more than a path's.
    """

    def __init__(self, kept: Kept, own: tuple[Ints, Ints], past: Ints, later: "Lesson | None") -> None:
        """For a stretch that sees what is kept at `past`; of its own tokens, those at own[0] are kept at own[1].

        `later` is of the stretch behind it, which went backward; None for the last.
        """
        self._kept, self._own, self._past, self._later = kept, own, past, later
        self._leaves: dict[int, tuple[Tensor, Tensor]] = {}
        self._slopes: dict[int, tuple[Tensor, Tensor]] = {}

    def join(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """[K, c + n, D] each: the past, then the stretch's own.

        May be called twice with the same, where activations are computed again: both get the same leaves.
        """
        here, there = self._own
        if len(here) and self._later is not None:
            at = np.searchsorted(self._later._past, there)
            for own, slope in zip((key, value), self._later._slopes[layer], strict=True):
                if own.requires_grad:
                    own.register_hook(_adding(here, slope[:, at]))  # pyright: ignore[reportUnknownMemberType]
        if not len(self._past):
            return key, value
        if layer not in self._leaves:
            past = self._kept.read(layer, self._past)
            self._leaves[layer] = (past[0].requires_grad_(), past[1].requires_grad_())
        old_key, old_value = self._leaves[layer]
        return torch.cat([old_key, key], dim=1), torch.cat([old_value, value], dim=1)

    def end(self) -> None:
        """The stretch went backward: take what it learned of its past to what later ones learned of it."""
        later, self._later = self._later, None
        for layer in list(self._leaves):
            slopes = [_slope(leaf) for leaf in self._leaves.pop(layer)]
            if later is not None:
                of = np.flatnonzero(np.isin(later._past, self._past))
                at = np.searchsorted(self._past, later._past[of])
                for slope, more in zip(slopes, later._slopes.pop(layer), strict=True):
                    slope[:, at] += more[:, of]
            self._slopes[layer] = (slopes[0], slopes[1])


def _slope(leaf: Tensor) -> Tensor:
    """The gradient of a leaf, wide enough to be added to."""
    wide = torch.float64 if leaf.dtype == torch.float64 else torch.float32
    return torch.zeros_like(leaf, dtype=wide) if leaf.grad is None else leaf.grad.to(wide)


def _adding(at: Ints, slope: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook that adds to a gradient at some tokens."""

    def add(grad: Tensor) -> Tensor:
        more = grad.clone()
        more[:, at] += slope.to(grad.dtype)
        return more

    return add
