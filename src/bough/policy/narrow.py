"""The last layer for some tokens alone: of the others only keys and values matter, as nobody asks what they predict.

A layer is attention and then work on single tokens, most of its arithmetic. So attention runs as ever, and the layer is
left; then it runs once more, for the tokens that are wanted, and finds the attention done.
"""

from contextlib import suppress
from typing import Any, cast

import torch
from torch import Tensor, nn

from bough.policy.attention import Asked


class _Attended(Exception):
    """The layer has done what is needed of all tokens."""


def narrow(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A forward pre-hook of the last layer; does nothing unless it is asked for some rows."""
    asked: Asked | None = named.get("bough")
    if asked is None or asked.wanted is None:
        return args, named
    wanted, whole, last = asked.wanted, asked.attend, asked.last
    found: list[Tensor] = []

    def attend_and_leave(
        layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        if last is not None:
            found.append(last(layer, query, key, value, scale, window=window))
        else:
            found.append(whole(layer, query, key, value, scale, window=window)[:, wanted])
        raise _Attended

    with suppress(_Attended):
        module.forward(*args, **{**named, "bough": Asked(attend_and_leave)})
    tokens = args[0].shape[1] if args else named["hidden_states"].shape[1]
    few = {name: _rows(told, tokens, wanted) for name, told in named.items()}
    return tuple(_rows(told, tokens, wanted) for told in args), {**few, "bough": Asked(whole, attended=found[0])}


def _rows(told: Any, tokens: int, wanted: Tensor) -> Any:
    """Of what a layer is told about each token, [1, tokens, ...], what is about those that are wanted."""
    if isinstance(told, tuple):
        return tuple(_rows(each, tokens, wanted) for each in cast("tuple[Any, ...]", told))
    of_tokens = isinstance(told, Tensor) and told.ndim > 1 and told.shape[1] == tokens
    return torch.index_select(told, 1, wanted) if of_tokens else told
