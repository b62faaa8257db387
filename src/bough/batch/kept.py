"""Keys and values that outlive the stretch they were made in, and their gradients.

They lie token by token in memory, so that those of some tokens are copied, or added to, row by row; those of tokens
side by side are read in place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from bough.tree import Ints

Learn: TypeAlias = Callable[[int, Tensor], None]
"""(0 for keys, 1 for values; [K, c, D], their gradient, to be called once for each)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Past:
    """Keys and values of c tokens that a stretch sees from before it.

    Attributes:
        key: [K, L, D], what is kept.
        value: [K, L, D].
        at: [c], where in it, ascending.
        learn: Is told their gradients; None where nobody wants them.
    """

    key: Tensor
    value: Tensor
    at: Ints
    learn: Learn | None = None

    def leaves(self) -> tuple[Tensor, Tensor]:
        """[K, c, D] each: a copy, whose gradients are passed on."""
        found = (_pick(self.key, self.at), _pick(self.value, self.at))
        if self.learn is not None:
            for number, leaf in enumerate(found):
                untyped: Any = leaf.requires_grad_()
                untyped.register_post_accumulate_grad_hook(partial(_tell, self.learn, number))
        return found


class Kept:
    """Keys and values of L tokens in every layer."""

    def __init__(self, tokens: int) -> None:
        """Make room for L tokens."""
        self._tokens = tokens
        self._pairs: dict[int, tuple[Tensor, Tensor]] = {}

    def pass_on(self, own: tuple[Ints, Ints], past: Ints, layer: int, key: Tensor, value: Tensor) -> Past | None:
        """What is kept at `past`; of a stretch's own keys and values, [K, n, D] each, own[0] are kept at own[1]."""
        here, there = own
        if len(here):
            if layer not in self._pairs:
                shape = (self._tokens, len(key), key.shape[-1])
                self._pairs[layer] = (key.new_zeros(shape).transpose(0, 1), value.new_zeros(shape).transpose(0, 1))
            for kept, new in zip(self._pairs[layer], (key, value), strict=True):
                kept.transpose(0, 1)[_rows(there, new)] = _pick(new, here).transpose(0, 1)
        return self.past(layer, past)

    def past(self, layer: int, at: Ints, learn: Learn | None = None) -> Past | None:
        """What is kept at some places, ascending; None where there are none."""
        if not len(at):
            return None
        key, value = self._pairs[layer]
        return Past(key=key, value=value, at=at, learn=learn)


class Lesson:
    """What a stretch sees from before it, and what it and all later stretches have learned of that.

    What a later stretch sees from before this one, this one could see as well: it is on one path. So gradients are
    handed from stretch to stretch, and never more than a path's.
    """

    def __init__(self, kept: Kept, own: tuple[Ints, Ints], past: Ints, later: "Lesson | None") -> None:
        """For a stretch that sees what is kept at `past`; of its own tokens, those at own[0] are kept at own[1].

        `later` is of the stretch behind it, which went backward; None for the last.
        """
        self._kept, self._own, self._past, self._later = kept, own, past, later
        self._slopes: dict[tuple[int, int], Tensor] = {}
        self._asked: dict[int, tuple[Tensor, Tensor]] = {}

    def past(self, layer: int, key: Tensor, value: Tensor) -> Past | None:
        """What a stretch with these keys and values, [K, n, D] each, sees from before it.

        May be called twice with the same, where activations are computed again.
        """
        here, there = self._own
        if len(here) and self._later is not None:
            at = np.searchsorted(self._later._past, there)
            for number, own in enumerate((key, value)):
                if own.requires_grad:
                    slope = _pick(self._later._slopes[layer, number], at)
                    own.register_hook(_adding(here, slope))  # pyright: ignore[reportUnknownMemberType]
        past = self._kept.past(layer, self._past, partial(self._learn, layer))
        if past is not None:
            self._asked[layer] = (past.key, past.value)
        return past

    def end(self) -> None:
        """The stretch went backward."""
        for layer, pair in self._asked.items():
            for number, kept in enumerate(pair):
                # Nothing came back to this layer, as where nothing is trained.
                if (layer, number) not in self._slopes:
                    self._learn(layer, number, kept.new_zeros((len(kept), len(self._past), kept.shape[-1])))
        self._asked.clear()
        self._later = None

    def _learn(self, layer: int, number: int, slope: Tensor) -> None:
        """Take what the stretch learned of its past to what later ones learned of it."""
        # Wide enough to be added to.
        slope = slope.to(torch.float64 if slope.dtype == torch.float64 else torch.float32)
        if self._later is not None:
            of, at = self._shared
            _add(slope, at, _pick(self._later._slopes.pop((layer, number)), of))
        self._slopes[layer, number] = slope

    @cached_property
    def _shared(self) -> tuple[Ints, Ints]:
        """Which of what the later stretch saw this one sees, too, and where in its own past that is."""
        assert self._later is not None
        of = np.flatnonzero(np.isin(self._later._past, self._past))
        return of, np.searchsorted(self._past, self._later._past[of])


def _rows(at: Ints, like: Tensor) -> slice | Tensor:
    """Ascending places, in the cheapest way to say them."""
    if len(at) and at[-1] - at[0] + 1 == len(at):
        return slice(int(at[0]), int(at[-1]) + 1)
    return torch.as_tensor(at, device=like.device)


def _pick(tensor: Tensor, at: Ints) -> Tensor:
    """Of [K, l, D] those at c ascending places, [K, c, D]: in place, where they are side by side."""
    rows = _rows(at, tensor)
    if isinstance(rows, slice):
        return tensor[:, rows]
    return tensor.transpose(0, 1).index_select(0, rows).transpose(0, 1)


def _add(tensor: Tensor, at: Ints, more: Tensor) -> None:
    """Add to [K, l, D] at c ascending places [K, c, D]."""
    rows = _rows(at, tensor)
    if isinstance(rows, slice):
        tensor[:, rows] += more
    else:
        tensor.transpose(0, 1).index_add_(0, rows, more.transpose(0, 1))


def _tell(learn: Learn, number: int, leaf: Tensor) -> None:
    assert leaf.grad is not None
    slope, leaf.grad = leaf.grad, None
    learn(number, slope)


def _adding(at: Ints, slope: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook that adds to a gradient at some tokens."""

    def add(grad: Tensor) -> Tensor:
        more = grad.clone()
        _add(more, at, slope.to(grad.dtype))
        return more

    return add
