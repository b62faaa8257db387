"""transformers' own forward pass of a causal model: on whole texts, or token by token with its own cache."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from jaxtyping import Float, Int
from torch import Tensor, nn

Trunk: TypeAlias = Callable[..., Tensor]
"""(input_ids=[B, L], use_cache=False) -> last hidden states [B, L, W]."""

CACHES = ("cache", "past_key_values", "cache_params")
"""The names of a cache among the arguments and outputs of transformers' models, in the order of their age."""


def states_of_texts(trunk: Trunk, tokens: Int[Tensor, " U"], positions: Int[Tensor, " U"]) -> Float[Tensor, "U W"]:
    """Last hidden states of concatenated whole texts, in one forward pass.

    Shorter texts are padded on the right, without a mask: no layer of a causal model passes anything from a token to
    the tokens before it.

    Args:
        trunk: The model.
        tokens: [U].
        positions: [U], from 0 in each text.
    """
    text = (positions == 0).cumsum(0) - 1
    longest = int(positions.max()) + 1
    place = text * longest + positions
    padded = tokens.new_zeros((int(text[-1]) + 1) * longest)
    padded[place] = tokens
    return trunk(input_ids=padded.view(-1, longest), use_cache=False).flatten(0, 1)[place]


def decode(trunk: nn.Module, tokens: Int[Tensor, "B n"], cache: object | None) -> tuple[Float[Tensor, "B n W"], object]:
    """Last hidden states of the next tokens of B texts of one length, and the cache with them.

    Raises:
        ValueError: when the model returns no cache.
    """
    given = {} if cache is None else {_cache_argument(type(trunk)): cache}
    output: Any = trunk(input_ids=tokens, use_cache=True, **given)
    found = next((held for name in CACHES if (held := getattr(output, name, None)) is not None), None)
    if found is None:
        raise ValueError("its forward pass returns no cache")
    return output.last_hidden_state, found


def select_texts(cache: Any, rows: Int[Tensor, " b"]) -> None:
    """Keep the texts `rows` of a cache, in this order."""
    cache.reorder_cache(rows)


@functools.cache
def _cache_argument(kind: type[nn.Module]) -> str:
    """The name of the cache among the arguments of a model's forward pass."""
    arguments = inspect.signature(kind.forward).parameters
    return next((name for name in CACHES if name in arguments), CACHES[0])
