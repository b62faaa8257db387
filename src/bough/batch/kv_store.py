"""Keys and values that later chunks attend to, and their gradients.

They lie token by token in memory: rows of some tokens are copied or added to, rows of adjacent tokens are views.

Two chunks of a prefix tree, in which c and e follow b:

    chunk 1     a  b  c  d       stores the keys and values of a and b
    chunk 2           e  f       its prefix is a, b, the path to e

Forward passes run from the first chunk to the last, backward passes from the last to the first. The backward pass of
chunk 2 leaves the gradients of a and b in its `KVGradCarry`; that of chunk 1 adds them to those of its own a and b.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from bough.tree import Ints

AddGradient: TypeAlias = Callable[[int, Tensor], None]
"""(0 for keys, 1 for values; their gradient [K, c, D]), called once for each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KVPrefix:
    """Keys and values of the c tokens of a chunk's prefix.

    Attributes:
        key: [K, L, D], all that is stored.
        value: [K, L, D].
        at: [c], which of the L tokens, ascending.
        add_gradient: Receives their gradients; None where no gradient is needed.
    """

    key: Tensor
    value: Tensor
    at: Ints
    add_gradient: AddGradient | None = None

    def leaves(self) -> tuple[Tensor, Tensor]:
        """[K, c, D] each: copies whose gradients go to `add_gradient`."""
        found = (_pick(self.key, self.at), _pick(self.value, self.at))
        if self.add_gradient is not None:
            for number, leaf in enumerate(found):
                untyped: Any = leaf.requires_grad_()
                untyped.register_post_accumulate_grad_hook(partial(_pass_gradient, self.add_gradient, number))
        return found


class KVStore:
    """Keys and values of L tokens in every layer."""

    def __init__(self, tokens: int) -> None:
        """Make an empty store."""
        self._tokens = tokens
        self._pairs: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, own: tuple[Ints, Ints], past: Ints, layer: int, key: Tensor, value: Tensor) -> KVPrefix | None:
        """Store rows own[0] of a chunk's keys and values, [K, n, D] each, at own[1]; return those stored at `past`."""
        here, there = own
        if len(here):
            if layer not in self._pairs:
                shape = (self._tokens, len(key), key.shape[-1])
                self._pairs[layer] = (key.new_zeros(shape).transpose(0, 1), value.new_zeros(shape).transpose(0, 1))
            for stored, new in zip(self._pairs[layer], (key, value), strict=True):
                stored.transpose(0, 1)[_rows(there, new)] = _pick(new, here).transpose(0, 1)
        return self.prefix(layer, past)

    def prefix(self, layer: int, at: Ints, add_gradient: AddGradient | None = None) -> KVPrefix | None:
        """The keys and values stored at `at`, ascending; None for none."""
        if not len(at):
            return None
        key, value = self._pairs[layer]
        return KVPrefix(key=key, value=value, at=at, add_gradient=add_gradient)


class KVGradCarry:
    """The gradient of a chunk's prefix, summed over the chunk and all later ones.

    The part of a later chunk's prefix that lies before this chunk is part of this chunk's prefix too: prefixes are
    paths. So gradients are carried from chunk to chunk, and never exceed one path.
    """

    def __init__(self, store: KVStore, own: tuple[Ints, Ints], past: Ints, later: "KVGradCarry | None") -> None:
        """Make the carry of a chunk whose prefix is stored at `past`, and whose tokens own[0] are stored at own[1].

        `later` belongs to the next chunk, whose backward pass is done; None for the last chunk.
        """
        self._store, self._own, self._past, self._later = store, own, past, later
        self._gradients: dict[tuple[int, int], Tensor] = {}
        self._used: dict[int, tuple[Tensor, Tensor]] = {}

    def prefix(self, layer: int, key: Tensor, value: Tensor) -> KVPrefix | None:
        """The prefix of the chunk, whose own keys and values, [K, n, D] each, get the gradients of later chunks.

        May be called twice for a layer, where activations are recomputed.
        """
        here, there = self._own
        if len(here) and self._later is not None:
            # Every stored token of this chunk is in the prefix of the next one: prefixes are paths, so what a later
            # chunk reads of this one lies on the path to the next one too.
            at = np.searchsorted(self._later._past, there)
            for number, own in enumerate((key, value)):
                if own.requires_grad:
                    gradient = _pick(self._later._gradients[layer, number], at)
                    own.register_hook(_adding(here, gradient))  # pyright: ignore[reportUnknownMemberType]
        prefix = self._store.prefix(layer, self._past, partial(self._add, layer))
        if prefix is not None:
            self._used[layer] = (prefix.key, prefix.value)
        return prefix

    def end(self) -> None:
        """The chunk's backward pass is done."""
        for layer, pair in self._used.items():
            for number, stored in enumerate(pair):
                # No gradient reached this layer: the chunk trains no token.
                if (layer, number) not in self._gradients:
                    self._add(layer, number, stored.new_zeros((len(stored), len(self._past), stored.shape[-1])))
        self._used.clear()
        self._later = None

    def _add(self, layer: int, number: int, gradient: Tensor) -> None:
        """Add the chunk's gradient of its prefix to that of later chunks."""
        # Sums are taken in float32 at least.
        gradient = gradient.to(torch.float64 if gradient.dtype == torch.float64 else torch.float32)
        if self._later is not None:
            of, at = self._shared
            _add(gradient, at, _pick(self._later._gradients.pop((layer, number)), of))
        self._gradients[layer, number] = gradient

    @cached_property
    def _shared(self) -> tuple[Ints, Ints]:
        """Which tokens of the later chunk's prefix are in this one's, and where."""
        assert self._later is not None
        of = np.flatnonzero(np.isin(self._later._past, self._past))
        return of, np.searchsorted(self._past, self._later._past[of])


def _rows(at: Ints, like: Tensor) -> slice | Tensor:
    """Ascending indices: a slice where they are adjacent."""
    if len(at) and at[-1] - at[0] + 1 == len(at):
        return slice(int(at[0]), int(at[-1]) + 1)
    return torch.as_tensor(at, device=like.device)


def _pick(tensor: Tensor, at: Ints) -> Tensor:
    """Rows at c ascending indices of [K, l, D], [K, c, D]: a view, where they are adjacent."""
    rows = _rows(at, tensor)
    if isinstance(rows, slice):
        return tensor[:, rows]
    return tensor.transpose(0, 1).index_select(0, rows).transpose(0, 1)


def _add(tensor: Tensor, at: Ints, more: Tensor) -> None:
    """Add [K, c, D] to [K, l, D] at c ascending indices."""
    rows = _rows(at, tensor)
    if isinstance(rows, slice):
        tensor[:, rows] += more
    else:
        tensor.transpose(0, 1).index_add_(0, rows, more.transpose(0, 1))


def _pass_gradient(add_gradient: AddGradient, number: int, leaf: Tensor) -> None:
    assert leaf.grad is not None
    # Not kept at the leaf as well: the carry holds the sum over chunks.
    gradient, leaf.grad = leaf.grad, None
    add_gradient(number, gradient)


def _adding(at: Ints, gradient: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook that adds to a gradient at some tokens."""

    def add(grad: Tensor) -> Tensor:
        more = grad.clone()
        _add(more, at, gradient.to(grad.dtype))
        return more

    return add
