"""The limit of an action for a model whose tokens are bytes of text."""

from dataclasses import replace

from bough.engine.engine import Sampling
from bough.engine.messages import Messages

TEXT_TOKENS = 4096
"""Least `max_tokens` of an agent whose tokens are bytes of text: a short text and several calls."""


def text_sampling(sampling: Sampling, renderer: object) -> Sampling:
    """The sampling settings of an agent for a model with this renderer.

    A world's limit counts the tokens of its own policy. Bytes of text are far more, and a server counts its own tokens:
    with `Messages`, `max_tokens` is at least `TEXT_TOKENS`.
    """
    if not isinstance(renderer, Messages):
        return sampling
    return replace(sampling, max_tokens=max(TEXT_TOKENS, sampling.max_tokens))
